// A collective of one rank as its device executes it: a plan that is bound to a count, type and
// operation, as tables in the device's memory. Where its messages lie is for others to say: in
// those that the calls of a communicator in streams share, or in a lane
// (ordered_connectors.h).
#pragma once

#include "plan/model/plan.h"
#include "runtime/base/status.h"
#include "runtime/cuda/calls/bind_for_device.h"
#include "runtime/cuda/calls/upload_ring.h"
#include "runtime/cuda/device/arena_space.h"
#include "runtime/cuda/device/device_memory.h"
#include "runtime/cuda/scaling/input_scale.h"
#include "runtime/cuda/tables/device_collective.h"
#include "runtime/cuda/tables/straight_images.h"
#include "runtime/exec/bind/bind.h"
#include "runtime/invocation/collective.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace occl::cuda {

/// What the shapes of a rank share. Outlives them.
struct ShapeContext {
  DeviceMemory &memory;
  ArenaSpace &space;    // of its own arena
  ArenaSpace &onDevice; // of memory.onDevice(): the same, unless arenas are host memory
  uint32_t rank;
  uint32_t numRanks;
  uint32_t maxBlocks; // that the device can run at once
  /// Brings the tables of shapes to the device, on their way when the shape is made; null: they are
  /// there then.
  UploadRing *uploads = nullptr;
};

/// Its memory is for whoever derives from it to give back.
class Shape {
public:
  const DeviceCollective &collective() const { return device; }
  const interpreter::Binding &binding() const { return *bound; }
  /// Of the caller's buffers, in bytes.
  uint64_t largestBuffer() const;
  /// After how many nanoseconds without progress a thread block in a stream makes way (adoption.h);
  /// 0: it does not. timeout: the call's, in nanoseconds.
  uint64_t leaveAfter(uint64_t timeout) const;
  /// What a call with the factor does to its input, which is bound without; its errors as
  /// checkReadable(), and InvalidArgument if the plan's calls have none.
  StatusOr<InputScale> scaleBy(const InputFactor &factor, bool isCaptured) const;

protected:
  explicit Shape(const ShapeContext &context) : context(context) {}
  ~Shape() = default;

  /// InvalidArgument if the plan does not suit devices, or does not fit into connectors of that
  /// geometry.
  Status bindTo(const daemon::CollectiveSpec &spec, const OrderedGeometry &sizes, Kernels kernels);
  /// All of `device` that does not say where memory lies.
  void describe(const plan::Plan &plan);
  /// What its kernels need in memory of this rank alone. Again, SystemError.
  Status takeOwnMemory();
  /// Device memory of this rank. Again.
  StatusOr<char *> take(uint64_t bytes);
  static Status invalid(const daemon::CollectiveSpec &spec, const std::string &why);

  const ShapeContext context;
  std::shared_ptr<const interpreter::Binding> bound;
  DeviceCollective device;
  std::vector<ArenaSpace::Piece> taken;

private:
  StraightTablesOnDevice straight; // until the device has them
  bool isStraightAlone = false;
  uint32_t inputDivisor = 1;
  bool mayHaveFactor = false, hasOutOfPlace = false;
};

} // namespace occl::cuda
