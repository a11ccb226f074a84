// Memory for copies of the inputs of a rank's calls.
#pragma once

#include "runtime/base/status.h"
#include "runtime/cuda/device/arena_space.h"
#include "runtime/cuda/memory/device_memory.h"

#include <cuda_runtime.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace occl::cuda {

/// Thread safety: any.
class InputMemory {
public:
  /// space: of memory.onDevice(), so all ranks that can access each other's devices can access it.
  /// Both outlive it.
  InputMemory(DeviceMemory &memory, ArenaSpace &space) : memory(memory), space(space) {}

  /// Aligned to 128 bytes; null: so much is not free.
  char *take(uint64_t bytes);
  /// Nothing accesses it any more.
  void giveBack(const char *taken);

  int device() const { return memory.device(); }

private:
  DeviceMemory &memory;
  ArenaSpace &space;
};

/// That of calls that run one after the other: they have one memory. Thread safety: one thread at a
/// time.
class OrderedScaledInputs {
public:
  explicit OrderedScaledInputs(InputMemory &inputs) : inputs(inputs) {}

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
  static bool suits(const Piece &piece, const Call &call) { return !(call.isDirect && piece.own); }
  Status giveBackUnused(const Call &call);
  uint64_t largerFor(const Call &call, uint64_t bytes) const;
  StatusOr<Piece> makePiece(const Call &call, uint64_t bytes);

  InputMemory &inputs;
  std::vector<Piece> pieces;
};

} // namespace occl::cuda
