// A plan as the devices of a communicator execute it: bound to a count, type and operation, with
// messages where the communicator's connectors have room for them. No CUDA.
#pragma once

#include "plan/model/plan.h"
#include "runtime/base/data_type.h"
#include "runtime/base/status.h"
#include "runtime/cuda/calls/ordered_geometry.h"
#include "runtime/cuda/tables/straight_images.h"
#include "runtime/exec/bind/bind.h"

#include <cstdint>
#include <memory>

namespace occl::cuda {

/// Which execute it. Those in streams have kernels of their own for straight thread blocks.
enum class Kernels : uint8_t { InStream, Resident };

struct DeviceBindRequest {
  uint32_t rank = 0;
  uint64_t count = 0; // elements of one part
  DataType type = DataType::Float32;
  ReduceOp op = ReduceOp::Sum;
  bool hasWideLines = true; // DeviceMemory::hasWideLines()
  Kernels kernels = Kernels::InStream;
};

struct DeviceBinding {
  std::shared_ptr<const interpreter::Binding> bound;
  /// No bytes unless all thread blocks are straight.
  StraightTablesOnDevice straight;
  /// These kernels need no other tables.
  bool isStraightAlone = false;
};

/// All ranks come to the same messages, whatever their kernels. Large messages are cut until they
/// fit. InvalidArgument if they do not fit then, or the request does not fit the plan; InvalidPlan:
/// see interpreter::bind(), which says what the plan must be.
StatusOr<DeviceBinding> bindForDevice(const plan::Plan &plan, const OrderedGeometry &sizes,
                                      const DeviceBindRequest &request);

} // namespace occl::cuda
