// A plan as the devices of a communicator execute it: bound to a count, type and operation, with
// messages where the communicator's connectors have room for them, as tables in one piece. No CUDA.
#pragma once

#include "plan/model/plan.h"
#include "runtime/base/data_type.h"
#include "runtime/base/status.h"
#include "runtime/cuda/calls/ordered_geometry.h"
#include "runtime/cuda/tables/device_collective.h"
#include "runtime/exec/bind/bind.h"

#include <cstdint>
#include <memory>
#include <memory_resource>
#include <vector>

namespace occl::cuda {

/// Which execute it. Those in streams have kernels of their own for straight thread blocks.
enum class Kernels : uint8_t { InStream, Resident };

struct DeviceBindRequest {
  uint32_t rank = 0;
  uint64_t count = 0; // elements of one part
  DataType type = DataType::Float32;
  ReduceOp op = ReduceOp::Sum;
  bool hasWideLines = true; // DeviceMemory::hasWideLines()
  bool isSimple = false;    // whatever protocol the plan wants: DeviceMemory::isAcrossMachines()
  Kernels kernels = Kernels::InStream;
};

/// What kernels need of a bound plan in memory of their device, which begins at a multiple of 128:
/// words of adoptions, zero at first, then the images of thread blocks, then the tables of straight
/// ones.
struct DeviceTables {
  std::pmr::vector<char> bytes;
  bool hasAdoptions = false;
  /// 0: there are no images, or tables, in which case `straight` is as it was made.
  uint64_t imagesAt = 0, straightAt = 0;
  uint64_t imageStride = 0;
  StraightImages straight = {}; // its `images` is not set
};

struct DeviceBinding {
  std::shared_ptr<const interpreter::Binding> bound;
  DeviceTables tables;
  /// All thread blocks are straight, and these kernels need no other tables.
  bool isStraightAlone = false;
};

/// All ranks come to the same messages, whatever their kernels. Large messages are cut until they
/// fit. InvalidArgument if they do not fit then, or the request does not fit the plan, or a thread
/// block's tables do not fit into shared memory; InvalidPlan: see interpreter::bind(), which says
/// what the plan must be. All of it is of `memory`, which outlives it.
StatusOr<DeviceBinding>
bindForDevice(const plan::Plan &plan, const OrderedGeometry &sizes,
              const DeviceBindRequest &request,
              std::pmr::memory_resource *memory = std::pmr::get_default_resource());

/// The same messages, without tables for kernels. Errors are those of interpreter::bind().
StatusOr<std::shared_ptr<const interpreter::Binding>>
bindMessages(const plan::Plan &plan, const OrderedGeometry &sizes,
             const DeviceBindRequest &request);

} // namespace occl::cuda
