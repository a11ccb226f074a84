// A rank's partitioned sends and receives on its device. No CUDA in this header.
#pragma once

#include "runtime/base/status.h"
#include "runtime/partitioned/request.h"

namespace occl::cuda {

/// A request: its owner is DeviceParts.
class DevicePart;

/// Thread safety: any; of a request one thread at a time is in one of the functions.
/// Streams are CUstream_st* of the rank's device, captured or not. Errors are those of
/// occl_partitioned_device.h.
class DeviceParts {
public:
  virtual ~DeviceParts() = default;
  /// Local. Of the terms the reference is not looked at.
  virtual StatusOr<DevicePart *> make(const partitioned::Terms &terms) = 0;
  virtual Status start(DevicePart &part, void *stream) = 0;
  /// Partitions of the range; not empty.
  virtual Status mark(DevicePart &part, plan::Range range, void *stream) = 0;
  virtual Status prepare(DevicePart &part, void *stream) = 0;
  virtual Status wait(DevicePart &part, void *stream) = 0;
  /// What kernels have of it: occlPartDevice_t::state.
  virtual void *stateOf(const DevicePart &part) const = 0;
  virtual Status release(DevicePart &part) = 0;
};

} // namespace occl::cuda
