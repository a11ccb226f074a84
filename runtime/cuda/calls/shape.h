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
#include "runtime/cuda/memory/device_memory.h"
#include "runtime/cuda/memory/later_memory.h"
#include "runtime/cuda/scaling/input_scale.h"
#include "runtime/cuda/tables/device_collective.h"
#include "runtime/exec/step/invocation.h"
#include "runtime/invocation/collective.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace occl::cuda {

/// Of what ranks must call alike, for tables of shapes.
inline size_t hashOfShape(uint64_t planHash, uint64_t count, DataType type, ReduceOp op) {
  const uint64_t kind = static_cast<uint64_t>(type) << 8 | static_cast<uint64_t>(op);
  return std::hash<uint64_t>()(planHash ^ count * 0x9e3779b97f4a7c15u ^ kind << 48);
}

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
  /// Of communicators that take memory as they need it; null: all of it is there.
  LaterMemory *later = nullptr;
  /// For the bindings of shapes, one after the other; what does not fit is allocated.
  std::span<std::byte> room = {};
};

/// Its memory is for whoever derives from it to give back.
class Shape {
public:
  const DeviceCollective &collective() const { return device; }
  /// Of the caller's buffers, in bytes.
  uint64_t inputBytes() const { return bufferBytes[0]; }
  uint64_t outputBytes() const { return bufferBytes[1]; }
  uint64_t largestBuffer() const { return std::max(bufferBytes[0], bufferBytes[1]); }
  /// By so many its messages are cut, on all ranks.
  uint64_t numTiles() const { return tiles; }
  /// What each thread block moves in a call; for resident kernels alone.
  const std::vector<daemon::BlockBytes> &bytesOfBlocks() const { return moved; }
  /// After how many nanoseconds without progress a thread block in a stream makes way (adoption.h);
  /// 0: it does not. timeout: the call's, in nanoseconds.
  uint64_t leaveAfter(uint64_t timeout) const;
  /// What a call with the factor does to its input, which is bound without; its errors as
  /// checkReadable(), and InvalidArgument if the plan's calls have none.
  StatusOr<InputScale> scaleBy(const InputFactor &factor, bool isCaptured) const;

  /// How the plan of the spec is bound on this rank.
  static DeviceBindRequest requestFor(const ShapeContext &context,
                                      const daemon::CollectiveSpec &spec, Kernels kernels);

protected:
  explicit Shape(const ShapeContext &context) : context(context) {}
  ~Shape() = default;

  /// Describes all of `device` but its messages, and takes what kernels need in memory of this rank
  /// alone. InvalidArgument if the plan does not suit devices, or does not fit into connectors of
  /// that geometry; Again, SystemError.
  Status bindTo(const daemon::CollectiveSpec &spec, const OrderedGeometry &sizes, Kernels kernels);
  /// Device memory of this rank. Again.
  StatusOr<char *> take(uint64_t bytes);
  static Status invalid(const daemon::CollectiveSpec &spec, const std::string &why);

  const ShapeContext context;
  DeviceCollective device;
  std::vector<ArenaSpace::Piece> taken;

private:
  void describe(const plan::Plan &plan, const interpreter::Program &program);
  Status takeOwnMemory(const DeviceTables &tables);

  uint64_t bufferBytes[2] = {}, tiles = 1;
  std::vector<daemon::BlockBytes> moved;
  uint32_t inputDivisor = 1;
  bool mayHaveFactor = false, hasOutOfPlace = false;
};

} // namespace occl::cuda
