// Asks CUDA once for an address and remembers it for some calls, in a small table of each thread.
#include "runtime/cuda/device/buffer_check.h"

#include "runtime/cuda/device/cuda_calls.h"

#include <array>
#include <string>

namespace occl::cuda {

namespace {

/// Addresses that CUDA has said to be memory of a device; of one thread.
class KnownAddresses {
public:
  /// Whether it need not be asked for.
  bool holds(const void *address, int device) {
    Entry &entry = entryFor(address);
    return entry.address == address && entry.device == device && ++entry.uses < kUses;
  }
  void add(const void *address, int device) { entryFor(address) = {address, device, 0}; }

private:
  struct Entry {
    const void *address = nullptr;
    int device = 0;
    uint32_t uses = 0;
  };
  static constexpr uint32_t kUses = 256;
  static constexpr uint32_t kBits = 9;

  Entry &entryFor(const void *address) {
    // Multiplicative hashing (Knuth): allocations are aligned, so low bits say little.
    const uint64_t hash = reinterpret_cast<uint64_t>(address) * 0x9e3779b97f4a7c15ull;
    return entries[hash >> (64 - kBits)];
  }

  std::array<Entry, 1u << kBits> entries;
};

Status refuse(const char *name, int device, const std::string &what) {
  return {StatusCode::InvalidArgument,
          std::string(name) + " is " + what + ": it must be memory of the rank's CUDA device " +
              std::to_string(device) + ", of cudaMalloc, say, or of occlMemAlloc"};
}

Status ask(const char *name, const void *address, int device, bool isCaptured) {
  cudaPointerAttributes found = {};
  Status status = toStatus(cudaPointerGetAttributes(&found, address), "asking what a buffer is");
  if (!status.ok())
    return status;
  switch (found.type) {
  case cudaMemoryTypeDevice:
    if (found.device == device)
      return {};
    return refuse(name, device, "memory of CUDA device " + std::to_string(found.device));
  case cudaMemoryTypeManaged:
    return refuse(name, device, "managed memory");
  case cudaMemoryTypeHost:
    return refuse(name, device, "memory of the host");
  // A capture may have memory nodes, whose addresses CUDA does not know yet.
  default:
    return isCaptured ? Status() : refuse(name, device, "memory that CUDA does not know");
  }
}

} // namespace

Status checkOnDevice(std::initializer_list<GivenBuffer> buffers, int device, bool isCaptured) {
  static thread_local KnownAddresses known;
  for (const GivenBuffer &buffer : buffers) {
    if (buffer.bytes == 0 || known.holds(buffer.address, device))
      continue;
    Status status = ask(buffer.name, buffer.address, device, isCaptured);
    if (!status.ok())
      return status;
    // Addresses of captured calls are not remembered, since CUDA may not have known them.
    if (!isCaptured)
      known.add(buffer.address, device);
  }
  return {};
}

Status checkReadable(const char *name, const void *address, int device, bool isCaptured) {
  cudaPointerAttributes found = {};
  Status status = toStatus(cudaPointerGetAttributes(&found, address), "asking what a pointer is");
  if (!status.ok())
    return status;
  // Kernels of any device can read pinned and managed memory.
  const bool isElsewhere = found.type == cudaMemoryTypeDevice && found.device != device;
  const bool isUnknown = found.type == cudaMemoryTypeUnregistered && !isCaptured;
  if (!isElsewhere && !isUnknown)
    return {};
  return {StatusCode::InvalidArgument,
          std::string(name) + " is memory " +
              (isElsewhere ? "of CUDA device " + std::to_string(found.device)
                           : std::string("that CUDA does not know")) +
              ": it must be such that the rank's CUDA device " + std::to_string(device) +
              " can read it, of cudaMalloc or cudaHostAlloc, say"};
}

} // namespace occl::cuda
