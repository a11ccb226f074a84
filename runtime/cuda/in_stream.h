// In-stream execution: one kernel is one invocation of a collective on one rank.
#pragma once

#include "runtime/cuda/bound.h"
#include "runtime/cuda/device_collective.h"
#include "runtime/cuda/end_words.h"
#include "runtime/cuda/standby_words.h"

#include <cstdint>

namespace occl::cuda {

/// The kernel's argument.
struct InStreamArguments {
  DeviceCollective collective;
  /// Input and output.
  char *buffers[2] = {nullptr, nullptr};
  /// The number that the invocation must have: it waits for the ones before. kAnyNumber: the next
  /// one, whichever it is; kernels of the collective run one after the other.
  uint64_t number = 0;
  WaitBound bound;
  EndWords ended; // not of captured calls
};
inline constexpr uint64_t kAnyNumber = ~0ull;

/// The argument of a kernel of straight blocks that stays for further calls
/// (in_stream_standby.cuh).
struct StandbyArguments {
  /// Not captured. Its words have the tickets of further calls, too, which follow its own.
  InStreamArguments first;
  const Bell *bells = nullptr;  // of the host, by thread block
  uint64_t *presence = nullptr; // of the host
  uint64_t *relay = nullptr;    // of the device: the last session that has left
  uint64_t session = 0;         // the first call's ticket
  uint64_t patience = 0;        // nanoseconds without a call after which it leaves
};

/// Enqueues the kernel in a stream of the current device; one of at most so many threads may be
/// started early (early_start.h). A cudaError_t.
int launchInStream(const InStreamArguments &arguments, uint32_t mostEarlyThreads, void *stream);
/// The same for a kernel that stays, of straight blocks.
int launchStandby(const StandbyArguments &arguments, void *stream);
/// Loads all kernels on the current device: the first launch of one would, and CUDA then waits for
/// kernels that run. A cudaError_t.
int loadInStream();

} // namespace occl::cuda
