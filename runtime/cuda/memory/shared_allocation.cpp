// Memory by CUDA's handles for other processes, and by a table of addresses within a process.
#include "runtime/cuda/memory/shared_allocation.h"

#include "runtime/cuda/device/cuda_calls.h"
#include "runtime/sync/mutex.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

namespace occl::cuda {

namespace {

static_assert(sizeof(cudaIpcMemHandle_t) == SharedHandle::kBytes);

/// What this process's ranks have, for each other.
class LocalAllocations {
public:
  void add(const std::shared_ptr<DeviceAllocation> &memory) {
    std::lock_guard lock(mutex);
    std::erase_if(byAddress, [](const auto &known) { return known.second.expired(); });
    byAddress[reinterpret_cast<uint64_t>(memory->begin)] = memory;
  }
  std::shared_ptr<DeviceAllocation> find(uint64_t address) {
    std::lock_guard lock(mutex);
    auto found = byAddress.find(address);
    return found == byAddress.end() ? nullptr : found->second.lock();
  }

private:
  Mutex mutex;
  std::map<uint64_t, std::weak_ptr<DeviceAllocation>> byAddress;
};

LocalAllocations &localAllocations() {
  // Never destroyed: threads may still be at work when the process ends.
  static LocalAllocations &allocations = *new LocalAllocations;
  return allocations;
}

} // namespace

DeviceAllocation::~DeviceAllocation() {
  OnDevice on(device);
  if (!isLeft)
    cudaFree(begin);
}

StatusOr<std::shared_ptr<DeviceAllocation>> takeShared(int device, uint64_t bytes,
                                                       const char *what) {
  void *begin = nullptr;
  if (Status status = toStatus(cudaMalloc(&begin, bytes), what); !status.ok())
    return status;
  auto taken = std::make_shared<DeviceAllocation>(device, static_cast<char *>(begin));
  localAllocations().add(taken);
  return taken;
}

Status fillIn(SharedHandle &handle, const DeviceAllocation &of, bool forProcesses) {
  handle.device = of.device;
  handle.address = reinterpret_cast<uint64_t>(of.begin);
  if (!forProcesses)
    return {};
  cudaIpcMemHandle_t made;
  Status status = toStatus(cudaIpcGetMemHandle(&made, of.begin),
                           "sharing device memory (cudaIpc; OCCL_P2P_DISABLE=1 does without)");
  std::memcpy(handle.handle, &made, sizeof made);
  return status;
}

StatusOr<char *> MappedAllocations::map(const SharedHandle &handle, bool isSameProcess, int ordinal,
                                        const std::string &who) {
  // Within a process an address is enough, with peer access between the devices.
  if (isSameProcess) {
    auto memory = localAllocations().find(handle.address);
    if (!memory)
      return Status(StatusCode::PeerFailed, who + " has destroyed its communicator");
    // Another communicator may have enabled the access: that is no error.
    if (handle.device != ordinal) {
      cudaError_t enabled = cudaDeviceEnablePeerAccess(handle.device, 0);
      if (enabled == cudaErrorPeerAccessAlreadyEnabled)
        (void)cudaGetLastError();
      else if (enabled != cudaSuccess)
        return toStatus(enabled, ("accessing the device of " + who).c_str());
    }
    kept.push_back(std::move(memory));
    return kept.back()->begin;
  }
  // From another process: map the handle.
  cudaIpcMemHandle_t given;
  std::memcpy(&given, handle.handle, sizeof given);
  void *mapped = nullptr;
  Status opened = toStatus(cudaIpcOpenMemHandle(&mapped, given, cudaIpcMemLazyEnablePeerAccess),
                           ("mapping the device memory of " + who +
                            " (cudaIpc; it needs NVLink or PCIe peer-to-peer access between the "
                            "devices: OCCL_P2P_DISABLE=1 does without, through host memory)")
                               .c_str());
  if (!opened.ok())
    return opened;
  imports.push_back(static_cast<char *>(mapped));
  return imports.back();
}

void MappedAllocations::abandon() {
  for (const auto &others : kept)
    others->isLeft = true;
  imports.clear();
}

void MappedAllocations::unmap() {
  for (char *import : imports)
    cudaIpcCloseMemHandle(import);
  imports.clear();
}

} // namespace occl::cuda
