// Memory in which the calls of a rank's streams are packed.
#pragma once

#include "runtime/base/status.h"
#include "runtime/cuda/memory/device_memory.h"
#include "runtime/cuda/scaling/input_memory.h"

#include <memory>

namespace occl::cuda {

/// All packed calls of a rank have it, one after the other. It is taken with the first of them, and
/// not given back before the rank ends: graphs may have it, and what comes behind a call reads it.
/// Thread safety: one thread at a time.
class PackingMemory {
public:
  /// For one call.
  struct Room {
    char *input, *output; // PackedCalls::kMostBytes each
  };
  /// inputs outlives it.
  explicit PackingMemory(InputMemory &inputs) : inputs(inputs) {}
  /// The device is current. Again: there is no such memory; SystemError.
  StatusOr<Room> room();
  /// Something may still access it: it is never freed.
  void abandon();

private:
  InputMemory &inputs;
  char *begin = nullptr;
  std::unique_ptr<DeviceAllocation> own; // else it is of the rank's arena
};

} // namespace occl::cuda
