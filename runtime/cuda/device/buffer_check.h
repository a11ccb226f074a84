// Whether the user's buffers are what collectives on devices take: memory of the rank's device.
// Memory that the host or another device can write too (managed or pinned memory, another device's)
// is refused: what kernels fence for, and where results are complete, is the device alone.
#pragma once

#include "runtime/base/status.h"

#include <cstdint>
#include <initializer_list>

namespace occl::cuda {

/// Of a collective's.
inline constexpr const char *kBufferNames[2] = {"sendBuffer", "recvBuffer"};

struct GivenBuffer {
  const char *name; // for errors
  const void *address;
  uint64_t bytes; // of 0 bytes it is not looked at
};

/// The buffers of a call. InvalidArgument if CUDA says that one is anything but memory of that
/// device. isCaptured: what CUDA knows nothing of passes, as it may be memory of the graph that is
/// captured.
///
/// Asking CUDA takes most of a microsecond, so a thread remembers the addresses that it has asked
/// for, and asks again every 256 calls: an address that was freed and is now that of other memory
/// is noticed by then. Thread safety: any.
Status checkOnDevice(std::initializer_list<GivenBuffer> buffers, int device, bool isCaptured);

/// Whether kernels of the device can read what lies there: its own memory, and managed and pinned
/// memory. `name` is for the error, InvalidArgument. Of captured calls memory that CUDA does not
/// know passes. Thread safety: any.
Status checkReadable(const char *name, const void *address, int device, bool isCaptured);

} // namespace occl::cuda
