// Two halves of pinned memory by turns: one fills up while the copies from the other are on their
// way.
#include "runtime/cuda/calls/upload_ring.h"

#include "runtime/base/cache_line.h"
#include "runtime/cuda/device/cuda_calls.h"
#include "runtime/cuda/device/shared_streams.h"

#include <chrono>
#include <cstring>

namespace occl::cuda {

namespace {

constexpr auto kPatience = std::chrono::milliseconds(20000);
constexpr uint64_t kAlignment = 256;

} // namespace

StatusOr<std::unique_ptr<UploadRing>> UploadRing::make(int device) {
  std::unique_ptr<UploadRing> ring(new UploadRing);
  void *memory = nullptr;
  Status status = toStatus(cudaHostAlloc(&memory, 2 * kMostBytes, cudaHostAllocDefault),
                           "allocating pinned memory for tables");
  if (!status.ok())
    return status;
  // An event for each half says when all copies from it have arrived.
  for (uint32_t h = 0; h < 2; ++h) {
    Half &half = ring->halves[h];
    half.memory = static_cast<char *>(memory) + h * kMostBytes;
    status = toStatus(cudaEventCreateWithFlags(&half.arrived, cudaEventDisableTiming),
                      "making a CUDA event");
    if (!status.ok())
      return status;
  }
  // The stream is shared by the process, since connections to the device are few.
  auto copies = sharedStreamOn(device, SharedStream::Tables);
  if (!copies.ok())
    return copies.status();
  ring->copies = *copies;
  return ring;
}

UploadRing::~UploadRing() {
  if (isLeft)
    return;
  for (Half &half : halves)
    if (half.arrived)
      cudaEventDestroy(half.arrived);
  if (halves[0].memory)
    cudaFreeHost(halves[0].memory);
}

/// Has the half's event behind its last copy, where it is unless recording it has failed.
Status UploadRing::mark(Half &half) const {
  if (half.isMarked)
    return {};
  Status status = toStatus(cudaEventRecord(half.arrived, copies), "recording a CUDA event");
  half.isMarked = status.ok();
  return status;
}

/// An event that was never recorded has arrived.
Status UploadRing::awaitHalf(Half &half) const {
  if (Status marked = mark(half); !marked.ok())
    return marked;
  const cudaError_t state = pollDevice([&] { return cudaEventQuery(half.arrived); }, kPatience);
  if (state == cudaErrorNotReady)
    return {StatusCode::Timeout,
            "copying tables to the device: it does not get round to it in 20 seconds"};
  return toStatus(state, "copying tables to the device");
}

Status UploadRing::put(char *to, const void *from, uint64_t bytes) {
  // The half is full: go on in the other one, once its copies have arrived.
  if (halves[current].used + bytes > kMostBytes) {
    if (Status status = awaitHalf(halves[current ^ 1]); !status.ok())
      return status;
    current ^= 1;
    halves[current].used = 0;
  }
  // The caller may use its memory again as soon as the pinned copy is made.
  Half &half = halves[current];
  char *pinned = half.memory + half.used;
  std::memcpy(pinned, from, bytes);
  Status status = toStatus(cudaMemcpyAsync(to, pinned, bytes, cudaMemcpyHostToDevice, copies),
                           "copying tables to the device");
  if (!status.ok())
    return status;
  half.used = alignUp(half.used + bytes, kAlignment);
  // The event behind the last copy stands for all that the half holds.
  isPending = true;
  last = current;
  half.isMarked = false;
  return mark(half);
}

/// The copies are one stream's, so the last one's event is all of theirs.
Status UploadRing::order(cudaStream_t stream) {
  if (!isPending)
    return {};
  Half &half = halves[last];
  if (Status marked = mark(half); !marked.ok())
    return marked;
  const cudaError_t state = cudaEventQuery(half.arrived);
  // Tables that have arrived need no order any more.
  isPending = state != cudaSuccess;
  return state == cudaErrorNotReady
             ? toStatus(cudaStreamWaitEvent(stream, half.arrived, 0), "ordering a stream")
             : toStatus(state, "copying tables to the device");
}

Status UploadRing::await() {
  if (!isPending)
    return {};
  // Every shape of a rank that ends would wait for a device that does not react.
  if (isLeft)
    return {StatusCode::Timeout, "tables are on their way to a device that does not react"};
  Status status = awaitHalf(halves[last]);
  isPending = !status.ok();
  return status;
}

} // namespace occl::cuda
