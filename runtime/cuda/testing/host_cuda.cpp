// Streams as lists of functions, events as places in them. All of it is behind one lock.
#include "runtime/cuda/testing/host_cuda.h"

#include "runtime/cuda/device/linked_devices.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

/// A place that its stream has come to or not; none: it was never recorded.
struct CUevent_st {
  std::shared_ptr<std::atomic<bool>> reached;
};

struct CUstream_st {
  /// False: it has to wait, and nothing behind it is executed.
  std::deque<std::function<bool()>> given;
};

struct CUuserObject_st {
  void *data;
  cudaHostFn_t destroy;
};

namespace occl::cuda::testing {

namespace {

struct Failure {
  cudaError_t error;
  uint32_t after;
};

struct Runtime {
  std::recursive_mutex mutex;
  bool isHeld = false;
  cudaError_t last = cudaSuccess;
  std::set<CUstream_st *> streams;
  std::map<const char *, size_t> allocations, pinned; // bytes
  std::set<void *> registered;
  std::map<std::string, Failure> failures;
  std::map<std::string, std::function<void()>> calls;
};

Runtime &runtime() {
  static Runtime &only = *new Runtime;
  return only;
}

/// Whether something of it was executed. With the lock.
bool advance(CUstream_st &stream) {
  bool hasMoved = false;
  while (!stream.given.empty() && stream.given.front()()) {
    stream.given.pop_front();
    hasMoved = true;
  }
  return hasMoved;
}

/// With the lock. Streams may wait for each other.
void advanceAll() {
  const auto moves = [](CUstream_st *stream) { return advance(*stream); };
  while (std::ranges::count_if(runtime().streams, moves) != 0) {
  }
}

/// With the lock.
bool isIn(const std::map<const char *, size_t> &pieces, const char *address) {
  auto behind = pieces.upper_bound(address);
  return behind != pieces.begin() && address < std::prev(behind)->first + std::prev(behind)->second;
}

/// Of the device, or pinned. With the lock.
bool isKnown(const char *address) {
  return isIn(runtime().allocations, address) || isIn(runtime().pinned, address);
}

void give(CUstream_st *stream, std::function<bool()> work) {
  std::lock_guard lock(runtime().mutex);
  stream->given.push_back(std::move(work));
  if (!runtime().isHeld)
    advanceAll();
}

cudaError_t failed(cudaError_t error) {
  std::lock_guard lock(runtime().mutex);
  return runtime().last = error;
}

/// What the call is to fail with, if it is to.
cudaError_t enter(const char *name) {
  std::function<void()> call;
  cudaError_t error = cudaSuccess;
  {
    std::lock_guard lock(runtime().mutex);
    if (auto found = runtime().calls.find(name); found != runtime().calls.end())
      call = found->second;
    auto found = runtime().failures.find(name);
    if (found != runtime().failures.end() && found->second.after-- == 0) {
      error = runtime().last = found->second.error;
      runtime().failures.erase(found);
    }
  }
  if (call)
    call();
  return error;
}

} // namespace

void resetHostCuda() {
  letDeviceGo();
  std::lock_guard lock(runtime().mutex);
  runtime().last = cudaSuccess;
  runtime().registered.clear();
  runtime().failures.clear();
  runtime().calls.clear();
}

void holdDevice() {
  std::lock_guard lock(runtime().mutex);
  runtime().isHeld = true;
}

void letDeviceGo() {
  std::lock_guard lock(runtime().mutex);
  runtime().isHeld = false;
  advanceAll();
}

void letStreamGo(cudaStream_t stream) {
  std::lock_guard lock(runtime().mutex);
  advance(*stream);
}

void failCall(const std::string &name, cudaError_t error, uint32_t after) {
  std::lock_guard lock(runtime().mutex);
  runtime().failures[name] = {error, after};
}

void inCall(const std::string &name, std::function<void()> call) {
  std::lock_guard lock(runtime().mutex);
  runtime().calls[name] = std::move(call);
}

uint64_t numAllocations() {
  std::lock_guard lock(runtime().mutex);
  return runtime().allocations.size();
}

cudaError_t lastError() {
  std::lock_guard lock(runtime().mutex);
  return runtime().last;
}

} // namespace occl::cuda::testing

using namespace occl::cuda::testing;

/// Returns from the call if it is to fail.
#define ENTER                                                                                      \
  if (const cudaError_t error = enter(__func__); error != cudaSuccess)                             \
  return error

extern "C" {

cudaError_t cudaGetLastError() {
  std::lock_guard lock(runtime().mutex);
  return std::exchange(runtime().last, cudaSuccess);
}
const char *cudaGetErrorName(cudaError_t) { return "error"; }
const char *cudaGetErrorString(cudaError_t) { return "of the host's CUDA"; }

// --- devices

cudaError_t cudaGetDevice(int *device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int) { return cudaSuccess; }
cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) { return cudaSuccess; }
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode *) { return cudaSuccess; }
cudaError_t cudaGetDriverEntryPointByVersion(const char *, void **, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult *) {
  return failed(cudaErrorNotSupported);
}

// --- memory

cudaError_t cudaMalloc(void **memory, size_t bytes) {
  ENTER;
  constexpr size_t kAlignment = 512;
  *memory = std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  std::lock_guard lock(runtime().mutex);
  runtime().allocations[static_cast<char *>(*memory)] = bytes;
  return cudaSuccess;
}
cudaError_t cudaFree(void *memory) {
  std::lock_guard lock(runtime().mutex);
  if (memory != nullptr && runtime().allocations.erase(static_cast<char *>(memory)) == 0)
    return failed(cudaErrorInvalidValue);
  std::free(memory);
  return cudaSuccess;
}
cudaError_t cudaHostAlloc(void **memory, size_t bytes, unsigned) {
  ENTER;
  *memory = std::malloc(bytes);
  std::lock_guard lock(runtime().mutex);
  runtime().pinned[static_cast<char *>(*memory)] = bytes;
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void *memory) {
  std::lock_guard lock(runtime().mutex);
  runtime().pinned.erase(static_cast<char *>(memory));
  std::free(memory);
  return cudaSuccess;
}
cudaError_t cudaHostRegister(void *memory, size_t, unsigned) {
  ENTER;
  std::lock_guard lock(runtime().mutex);
  return runtime().registered.insert(memory).second ? cudaSuccess
                                                    : failed(cudaErrorHostMemoryAlreadyRegistered);
}
cudaError_t cudaHostUnregister(void *memory) {
  ENTER;
  std::lock_guard lock(runtime().mutex);
  return runtime().registered.erase(memory) != 0 ? cudaSuccess
                                                 : failed(cudaErrorHostMemoryNotRegistered);
}
cudaError_t cudaHostGetDevicePointer(void **mapped, void *memory, unsigned) {
  *mapped = memory;
  return cudaSuccess;
}
/// Memory of the device or not.
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *attributes, const void *memory) {
  std::lock_guard lock(runtime().mutex);
  *attributes = {};
  const bool isOnDevice = isIn(runtime().allocations, static_cast<const char *>(memory));
  attributes->type = isOnDevice ? cudaMemoryTypeDevice : cudaMemoryTypeUnregistered;
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void *memory, int value, size_t bytes, cudaStream_t stream) {
  ENTER;
  give(stream, [=] {
    std::memset(memory, value, bytes);
    return true;
  });
  return cudaSuccess;
}
/// Of memory of the host that is not pinned it takes a copy at once; from the device to such memory
/// it waits until the device has come so far: as CUDA does.
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream) {
  ENTER;
  const char *begin = static_cast<const char *>(from);
  const auto done = std::make_shared<std::atomic<bool>>(false);
  std::unique_lock lock(runtime().mutex);
  const bool isOnDevice = isIn(runtime().allocations, begin);
  const bool isRead = isOnDevice || isIn(runtime().pinned, begin);
  const bool isWaitedFor = isOnDevice && !isKnown(static_cast<char *>(to));
  std::vector<char> copy(isRead ? nullptr : begin, isRead ? nullptr : begin + bytes);
  give(stream, [to, bytes, isRead, begin, done, copy = std::move(copy)] {
    std::memcpy(to, isRead ? begin : copy.data(), bytes);
    return *done = true;
  });
  lock.unlock();
  while (isWaitedFor && !*done)
    std::this_thread::yield();
  return cudaSuccess;
}

// --- between processes: handles of nothing

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *) {
  ENTER;
  *handle = {};
  return cudaSuccess;
}
cudaError_t cudaIpcOpenMemHandle(void **, cudaIpcMemHandle_t, unsigned) {
  return failed(cudaErrorNotSupported);
}
cudaError_t cudaIpcCloseMemHandle(void *) { return cudaSuccess; }

// --- streams and events

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned) {
  ENTER;
  std::lock_guard lock(runtime().mutex);
  *stream = new CUstream_st;
  runtime().streams.insert(*stream);
  return cudaSuccess;
}
cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
  *least = *greatest = 0;
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int) {
  return cudaStreamCreateWithFlags(stream, flags);
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  std::lock_guard lock(runtime().mutex);
  runtime().streams.erase(stream);
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  ENTER;
  std::lock_guard lock(runtime().mutex);
  return stream->given.empty() ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long *number) {
  *number = reinterpret_cast<unsigned long long>(stream);
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned) {
  ENTER;
  *event = new CUevent_st;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  if (event == nullptr)
    return failed(cudaErrorInvalidResourceHandle);
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  ENTER;
  if (event == nullptr)
    return failed(cudaErrorInvalidResourceHandle);
  auto reached = std::make_shared<std::atomic<bool>>(false);
  {
    std::lock_guard lock(runtime().mutex);
    event->reached = reached;
  }
  give(stream, [reached] { return *reached = true; });
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  ENTER;
  if (event == nullptr)
    return failed(cudaErrorInvalidResourceHandle);
  std::lock_guard lock(runtime().mutex);
  return !event->reached || *event->reached ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  ENTER;
  std::shared_ptr<std::atomic<bool>> reached;
  {
    std::lock_guard lock(runtime().mutex);
    reached = event->reached;
  }
  give(stream, [reached] { return !reached || reached->load(); });
  return cudaSuccess;
}

// --- graphs: what is kept with one stays with nobody

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t, cudaStreamCaptureStatus *, unsigned long long *,
                                     cudaGraph_t *, const cudaGraphNode_t **,
                                     const cudaGraphEdgeData **, size_t *) {
  return cudaSuccess;
}
cudaError_t cudaUserObjectCreate(cudaUserObject_t *object, void *data, cudaHostFn_t destroy,
                                 unsigned, unsigned) {
  ENTER;
  *object = new CUuserObject_st{data, destroy};
  return cudaSuccess;
}
cudaError_t cudaUserObjectRelease(cudaUserObject_t object, unsigned) {
  object->destroy(object->data);
  delete object;
  return cudaSuccess;
}
cudaError_t cudaGraphRetainUserObject(cudaGraph_t, cudaUserObject_t object, unsigned, unsigned) {
  ENTER;
  return cudaUserObjectRelease(object, 1);
}

} // extern "C"

namespace occl::cuda {

/// Devices access each other's memory.
Status lookAtPaths(int, PeerPaths &) { return {}; }

} // namespace occl::cuda
