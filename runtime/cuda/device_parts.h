// A rank's partitioned requests on its device. No CUDA in this header.
#pragma once

#include "runtime/base/status.h"
#include "runtime/cuda/scaling/input_scale.h"
#include "runtime/invocation/collective.h"
#include "runtime/partitioned/collective_buffers.h"
#include "runtime/partitioned/request.h"

#include <cstdint>

namespace occl::cuda {

/// A request; its rank owns it.
///
/// Thread safety: one thread at a time is in one of the functions. Streams are CUstream_st* of the
/// rank's device. Errors are those of occl_partitioned_device.h.
class DevicePart {
public:
  DevicePart() = default;
  DevicePart(const DevicePart &) = delete;
  DevicePart &operator=(const DevicePart &) = delete;
  virtual ~DevicePart() = default;

  virtual Status start(void *stream) = 0;
  /// Partitions of the range; not empty.
  virtual Status mark(plan::Range range, void *stream) = 0;
  virtual Status prepare(void *stream) = 0;
  virtual Status wait(void *stream) = 0;
  /// What kernels have of it: occlPartDevice_t::state.
  virtual void *state() = 0;
  /// Then there is none any more. InvalidArgument: its epoch has not ended.
  virtual Status release() = 0;
};

/// What the program says of a partitioned collective.
struct CollectiveTerms {
  const daemon::CollectiveSpec &spec; // its plan in rounds
  uint8_t kind = 0;                   // the API's value
  uint32_t root = 0;
  partitioned::DividedBuffers buffers;
  InputFactor factor;
};

} // namespace occl::cuda
