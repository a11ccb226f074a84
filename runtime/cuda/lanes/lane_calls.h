// The calls of a rank that are executed in lanes: which lane each is for, and the queue of those
// that have to wait for one, or for room in the window of their daemon. Knows nothing of CUDA, nor
// of what executes them. See docs/decisions/gpu/lanes.md.
#pragma once

#include "runtime/base/status.h"
#include "runtime/cuda/lanes/lane_table.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace occl::cuda {

/// One call, as far as lanes are concerned; whoever makes it derives what else there is to it.
struct LaneCall {
  virtual ~LaneCall() = default;

  uint64_t id = 0;
  uint32_t kernel = 0;
  LaneSignature signature;
  /// It takes room in the window though other ranks have not made the call, and holds up others
  /// there until they have: of calls in the order of streams.
  bool entersEarly = false;

private:
  friend class LaneCalls;
  std::optional<uint64_t> number; // in its lane, once it is announced: others count on it
  bool isCompared = false;        // with what other lanes have of its id
};

/// What executes calls.
class LaneEngine {
public:
  virtual ~LaneEngine() = default;

  /// Everything that executing the call in that lane may lack is taken; before it has a number.
  /// False: not now. An error: the call cannot be executed.
  virtual StatusOr<bool> prepare(LaneCall &call, LaneName lane) = 0;
  /// Executes the call, the next one in its lane; the request. Nothing: there is no room now. Any
  /// error of a call that has a number makes the communicator fail. Those that enter early have
  /// none yet: others hear of them when they have room.
  virtual StatusOr<std::optional<uint64_t>> execute(LaneCall &call, LaneName lane,
                                                    uint64_t number) = 0;
  virtual bool isComplete(uint32_t kernel, uint64_t request) const = 0;
};

/// Thread safety: one thread at a time.
class LaneCalls {
public:
  LaneCalls(LaneTable &table, LaneEngine &engine) : table(table), engine(engine) {}

  /// Executes the call now: true. False: it has to wait. Then it goes into the queue; without a
  /// number it may be forgotten instead. An error: it was not made, unless it has a number: then
  /// the communicator fails.
  StatusOr<bool> tryNow(LaneCall &call);
  bool hasNumber(const LaneCall &call) const { return call.number.has_value(); }
  /// In its lane.
  std::optional<uint64_t> numberOf(const LaneCall &call) const { return call.number; }
  /// Behind those of its id that wait.
  void enqueue(std::unique_ptr<LaneCall> call);

  /// Executes what can be executed now of what waits, which it appends to `executed` in order, and
  /// leaves lanes that others lack. An error is that of a call that cannot be executed. mustStop is
  /// asked before each call: true, and the rest is left for another time.
  Status advance(std::vector<std::unique_ptr<LaneCall>> &executed,
                 const std::function<bool()> &mustStop);
  /// All that wait, in order: nobody waits any more.
  std::vector<std::unique_ptr<LaneCall>> takeAll();

  /// Nothing of this rank is in flight in the lane, nor about to be.
  bool isIdle(LaneName lane);
  size_t numWaiting() const { return waiting.size(); }
  /// In the order in which they came.
  const std::list<std::unique_ptr<LaneCall>> &queue() const { return waiting; }
  /// A rank that the call waits for and that `isGone` says will never make it, if any.
  std::optional<uint32_t> lostPeerOf(const LaneCall &call,
                                     const std::function<bool(uint32_t rank)> &isGone) const;
  /// Ranks that have not made a call that has a number, as bits.
  uint32_t missingFor(const LaneCall &call) const;
  /// The lane that the id has of the kernel on this rank, if any.
  std::optional<uint32_t> laneOf(uint64_t id, uint32_t kernel) const;
  /// The id's calls are complete, and none waits: what is known of it goes. False: they are not.
  bool forget(uint64_t id);

private:
  static constexpr uint32_t kNone = ~0u;
  /// Calls of a lane in flight here at most: their signatures can be read, though a rank may have
  /// ended calls that another has not made yet.
  static constexpr size_t kMostInFlight = 200, kMostAhead = 8;
  static_assert(kLaneHistory > kMostInFlight + kMostAhead);

  struct Sequence {
    uint32_t lanes[kLaneKernels] = {kNone, kNone, kNone, kNone};
    uint32_t lastKernel = kNone;
    uint64_t lastRequest = 0; // there
    uint32_t numWaiting = 0;
  };
  struct Held {
    uint64_t id = 0;
    bool isHeld = false;
    bool owes = false; // a call has a number and is not executed yet
    std::deque<uint64_t> inFlight;
  };

  bool isComplete(const Sequence &sequence) const;
  void trim(uint32_t kernel, Held &lane);
  StatusOr<bool> tryCall(LaneCall &call, Sequence &sequence);
  StatusOr<bool> announce(LaneCall &call, Held &lane, LaneName name);
  StatusOr<bool> execute(LaneCall &call, Sequence &sequence, Held &lane, LaneName name);
  Status compareOthers(const LaneCall &call, const Sequence &sequence);
  StatusOr<Held *> laneFor(const LaneCall &call, Sequence &sequence);
  Status advanceQueue(std::vector<std::unique_ptr<LaneCall>> &executed,
                      const std::function<bool()> &mustStop);
  Status leaveWanted();
  void forgetLane(uint64_t id, uint32_t kernel);

  LaneTable &table;
  LaneEngine &engine;
  std::unordered_map<uint64_t, Sequence> sequences;
  Held held[kLaneKernels][kMaxLanes];
  std::list<std::unique_ptr<LaneCall>> waiting;
  /// Of the pass of advance(), or of tryNow(): kernels of which no lane is free.
  bool lacks[kLaneKernels] = {};
};

} // namespace occl::cuda
