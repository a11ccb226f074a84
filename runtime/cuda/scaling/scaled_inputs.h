// Memory for the scaled inputs of a rank's calls, and for copies as they are where a call is in
// place and its plan is not, and how they come there. The user's buffer is read by one small
// kernel, and by nobody else: docs/decisions/hosts/premultiplied-sums.md.
#pragma once

#include "runtime/base/status.h"
#include "runtime/cuda/device/arena_space.h"
#include "runtime/cuda/device/device_memory.h"
#include "runtime/cuda/scaling/scale_kernel.h"
#include "runtime/sync/mutex.h"

#include <cuda_runtime.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace occl::cuda {

/// Thread safety: any.
class ScaledInputs {
public:
  /// space: of memory.onDevice(), so all ranks that can access each other's devices can access it.
  /// Both outlive it.
  ScaledInputs(DeviceMemory &memory, ArenaSpace &space, uint32_t multiprocessors)
      : memory(memory), space(space), mostBlocks(4 * multiprocessors) {}
  ~ScaledInputs();
  ScaledInputs(const ScaledInputs &) = delete;
  ScaledInputs &operator=(const ScaledInputs &) = delete;

  /// Aligned to 128 bytes; null: so much is not free.
  char *take(uint64_t bytes);
  /// Nothing accesses it any more.
  void giveBack(const char *taken);

  /// As the next work of a stream of the device, which is current. SystemError.
  Status scaleIn(cudaStream_t stream, const Scaling &scaling) const;
  /// In no stream of the user's, and waits until it is done. Timeout after 20 seconds: it may be
  /// done later. SystemError.
  Status scaleNow(const Scaling &scaling);

  int device() const { return memory.device(); }

private:
  Status startStream();

  DeviceMemory &memory;
  ArenaSpace &space;
  const uint32_t mostBlocks;
  Mutex scaling; // the stream's user
  cudaStream_t own = nullptr;
};

/// That of calls that run one after the other: they have one memory. Thread safety: one thread at a
/// time.
class OrderedScaledInputs {
public:
  explicit OrderedScaledInputs(ScaledInputs &inputs) : inputs(inputs) {}

  struct Call {
    uint64_t number;
    bool isCaptured; // its memory is never freed
    bool isDirect;   // other ranks access its input
    /// Calls below this number are over. Asks the device.
    std::function<StatusOr<uint64_t>()> numFinished;
  };
  /// For the call's input; calls that come later overwrite it. The device is current. Again: there
  /// is no memory; SystemError.
  StatusOr<char *> memoryFor(const Call &call, uint64_t bytes);
  /// Something may still access it: it is never freed.
  void abandon();

private:
  struct Piece {
    char *begin;
    uint64_t bytes;
    std::shared_ptr<DeviceAllocation> own; // else of the rank's arena
    uint64_t lastCall;
    bool isCaptured;
  };
  Status giveBackUnused(const Call &call);
  StatusOr<Piece> makePiece(uint64_t bytes, bool isDirect);

  ScaledInputs &inputs;
  std::vector<Piece> pieces;
};

} // namespace occl::cuda
