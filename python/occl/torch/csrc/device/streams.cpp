#include "streams.h"

#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>

#include <dlfcn.h>

#include <string>

namespace occl_torch {

c10::Stream currentStream(c10::Device device) {
  return c10::impl::VirtualGuardImpl(device.type()).getStream(device);
}

// Pools are by priority: 0 is the one of torch.cuda.Stream(), -1 that of FSDP. What shares a stream
// with a message that waits for another rank waits, too.
c10::Stream ownStream(c10::Device device) {
  constexpr int kPriority = -2;
  return c10::impl::VirtualGuardImpl(device.type()).getNewStream(device, kPriority);
}

namespace {
template <typename Stream> CUstream_st *nativeHandle(const Stream &stream) {
  if constexpr (requires { stream.native_handle(); })
    return static_cast<CUstream_st *>(stream.native_handle());
  else
    C10_THROW_ERROR(NotImplementedError,
                    "occl: this version of PyTorch does not tell backends which CUDA stream is "
                    "the current one; CUDA tensors need a later one, as 2.11");
}
} // namespace

CUstream_st *handleOf(const c10::Stream &stream) { return nativeHandle(stream); }

bool isCaptured(const c10::Stream &stream) {
  // The driver is loaded where there is a CUDA stream; CUDA's runtime may be several copies.
  using Function = int (*)(CUstream_st *, int *);
  static const auto cuStreamIsCapturing = [] {
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    return driver ? reinterpret_cast<Function>(dlsym(driver, "cuStreamIsCapturing")) : nullptr;
  }();
  TORCH_CHECK(cuStreamIsCapturing, "occl: libcuda.so.1 has no cuStreamIsCapturing");
  int status = 0; // of CUstreamCaptureStatus: 0 none, 1 active, 2 invalidated
  // The legacy default stream cannot be captured: an error says that another one is.
  return cuStreamIsCapturing(handleOf(stream), &status) == 0 && status != 0;
}

std::shared_ptr<c10::Event> markOf(const c10::Stream &stream) {
  auto mark = std::make_shared<c10::Event>(stream.device_type());
  mark->record(stream);
  return mark;
}

} // namespace occl_torch
