// What a rank's lanes and shapes are on its device: memory for messages, tables, and their numbers
// in the resident daemons.
#pragma once

#include "plan/model/aliasing.h"
#include "runtime/base/status.h"
#include "runtime/cuda/calls/ordered_connectors.h"
#include "runtime/cuda/lanes/lane_table.h"
#include "runtime/cuda/resident/resident_daemon.h"
#include "runtime/sync/mutex.h"

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace occl::cuda {

/// A plan, count, type and operation as the lanes of one kernel execute it.
struct LaneShape {
  std::shared_ptr<const daemon::CollectiveSpec> spec; // without what is of one call: see nameless()
  plan::Aliasing aliasing;                            // of this rank
  std::unique_ptr<OrderedShape> shape;                // as small lanes execute it
  std::unique_ptr<OrderedShape> large; // as large ones do; null if none was to execute it yet
  uint32_t kernel = 0;
  bool isLarge = false;             // large lanes are for it
  const PartGates *parts = nullptr; // of a partitioned collective
  uint32_t lastLane = 0;            // where its number stays, if it is one
  uint64_t lastUse = 0;
  /// By lane: the number of the two in the kernel's daemon, and its last request.
  struct Number {
    uint32_t number = 0;
    std::optional<uint64_t> last;
  };
  std::unordered_map<uint32_t, Number> numbers;
};

/// Thread safety: one thread at a time, but for readCounts().
class DeviceLanes {
public:
  /// The daemon of a kernel, to which the rank is attached.
  using DaemonOf = std::function<StatusOr<resident::ResidentDaemon *>(uint32_t kernel)>;
  using TenantOf = std::function<resident::Tenant &(uint32_t kernel)>;

  /// firstCall: the number of the first call of each lane. Memory for large lanes is taken here, on
  /// all ranks or on none, as nothing else of the arena is taken yet.
  DeviceLanes(const ShapeContext &context, uint64_t firstCall, DaemonOf daemonOf,
              TenantOf tenantOf);

  /// The same on all ranks.
  LaneNumbers numbers() const { return {small, large ? kMaxLargeLanes : 0}; }
  /// InvalidArgument if the plan does not suit; Again if there is no device memory; SystemError.
  /// parts: of a partitioned collective, which has a shape of its own; else null.
  StatusOr<std::shared_ptr<LaneShape>> shapeFor(const daemon::CollectiveSpec &spec,
                                                const PartGates *parts = nullptr);
  /// The plan as lanes would execute it, without tables; errors as shapeFor().
  StatusOr<std::shared_ptr<const interpreter::Binding>>
  bind(const daemon::CollectiveSpec &spec) const;
  /// Whether lanes can execute the plan, with at most so many thread blocks on any rank: the same
  /// on all. InvalidArgument.
  Status fits(const daemon::CollectiveSpec &spec, uint32_t mostBlocks) const;
  /// The shape of a partitioned collective that is over: its memory, and what `parts` leads to, is
  /// another's once this has returned and executors have come by.
  void forget(const PartGates *parts);
  /// The number of the two in the kernel's daemon; nothing: the daemon has none now. Again: there
  /// is no device memory for the lane; InvalidArgument, SystemError.
  StatusOr<std::optional<uint32_t>> numberOf(LaneName lane, LaneShape &shape);
  /// The same if there is one already.
  static std::optional<uint32_t> knownNumberOf(LaneName lane, const LaneShape &shape) {
    auto known = shape.numbers.find(lane.number);
    return known == shape.numbers.end() ? std::nullopt : std::optional(known->second.number);
  }
  /// The daemon's request of a call of the two.
  static void noteRequest(LaneName lane, LaneShape &shape, uint64_t request) {
    shape.numbers[lane.number].last = request;
    shape.lastLane = lane.number;
  }
  /// Some of the numbers of the kernel's daemon of which nothing is in flight, those of shapes that
  /// were not called for long first.
  void giveNumbersBack(uint32_t kernel);
  /// The daemon's number of the n-th call in a lane.
  uint64_t ordinalOf(uint64_t number) const { return firstCall + number; }

  /// What the device has counted in the lane, by thread block: of as many as there is room for. Any
  /// thread; SystemError.
  Status readCounts(LaneName lane, std::vector<resident::BlockCounts> &counts) const;

private:
  struct Key {
    uint64_t planHash, count;
    DataType type;
    ReduceOp op;
    const PartGates *parts;

    bool operator==(const Key &) const = default;
  };
  struct HashOfKey {
    size_t operator()(const Key &key) const {
      return hashOfShape(key.planHash, key.count, key.type, key.op);
    }
  };
  /// Stays until the communicator ends.
  struct Lane {
    std::unique_ptr<OrderedConnectors> connectors;
    resident::BlockCounts *counts = nullptr; // kMaxTasks
    // Of one that could not be made: the device may be about to store there.
    std::unique_ptr<OrderedConnectors> unfinished;
    std::optional<ArenaSpace::Piece> taken; // for `counts`
  };

  /// For a large lane: what it takes when it is first used.
  struct Reserved {
    std::optional<OrderedConnectors::Pieces> connectors;
    std::optional<ArenaSpace::Piece> counts;
  };

  bool reserve(Reserved &lane, const OrderedGeometry &sizes);
  void giveBack(Reserved &lane);
  Reserved *reservedFor(LaneName lane);
  Status makeLarge(LaneShape &shape);
  void removeNumbers(LaneShape &shape);
  StatusOr<Lane *> laneAt(LaneName name);
  StatusOr<std::unique_ptr<OrderedShape>> makeShape(const daemon::CollectiveSpec &spec,
                                                    const OrderedGeometry &sizes);
  bool forgetOldest();
  /// Of small lanes. Known once ranks are connected.
  OrderedGeometry geometry(bool hasLines) const {
    return OrderedGeometry::forLane(context.numRanks, hasLines,
                                    hasLines && context.memory.hasWideLines());
  }
  /// Of that lane.
  OrderedGeometry geometry(LaneName lane) const;

  const ShapeContext context;
  const uint64_t firstCall;
  uint32_t small = 0;                                          // lanes of each kernel
  std::optional<OrderedGeometry> large;                        // nothing: there are none
  std::array<Reserved, OrderedGeometry::kLargeLanes> reserved; // if there are any
  const DaemonOf daemonOf;
  const TenantOf tenantOf;
  uint64_t uses = 0;
  std::unordered_map<Key, std::shared_ptr<LaneShape>, HashOfKey> shapes;
  mutable Mutex mutex; // guards `lanes` against those that count
  std::array<std::array<Lane, kMaxLanes>, kLaneKernels> lanes;
};

} // namespace occl::cuda
