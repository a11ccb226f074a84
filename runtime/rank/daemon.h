// One communicator's rank: takes submissions, has its device run them in whatever order the peers
// allow, tells who waits.
#pragma once

#include "runtime/control/membership/shrink.h"
#include "runtime/control/membership/split.h"
#include "runtime/partitioned/requests.h"
#include "runtime/rank/admission.h"
#include "runtime/rank/partitioned_collectives.h"
#include "runtime/rank/rank_insight.h"
#include "runtime/rank/room_wait.h"
#include "runtime/rank/transfers.h"
#include "runtime/sched/core.h"
#include "runtime/sched/watchdog.h"

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace occl::daemon {

class Executor;
class LaneRun;

/// Thread safety: any. After a failure every function returns it at once.
class Daemon {
public:
  /// Attaches to the device. The fabric is connected.
  Daemon(std::shared_ptr<Device> device, std::unique_ptr<Fabric> fabric, const Options &options);
  /// drain(), then detaches and tells the peers that this rank has left. Not from a callback.
  ~Daemon();
  /// Waits until nothing of it is in flight: that takes no longer than the deadlines of what is,
  /// and what callbacks take to return.
  void drain();
  /// Whether something of it is in flight; what has failed waits for no room any more.
  bool isBusy() { return collectives.beginDeferred() || core.hasOpen(); }

  uint32_t rank() const { return core.fabric->rank(); }
  uint32_t numRanks() const { return core.fabric->numRanks(); }

  /// What binds a call's signature, asked for if its shape is not known: takes as long as choosing
  /// and reading a plan. Same signature, same answer.
  using SpecOf = std::function<StatusOr<CollectiveSpec>()>;
  /// A call of kCallSequence, its caller's own: waits for room, then executes what the device has
  /// until the call has ended; its result. Writes `call.since`.
  Status call(Submission &call, const SpecOf &specOf);
  /// Submits the call. Again: there is no room.
  StatusOr<RequestId> start(const Submission &call, const SpecOf &specOf);

  /// InvalidArgument: see Transfers::check.
  Status check(const Transfer &transfer) const { return transfers.check(transfer); }
  /// Runs the transfers, which have been checked, to their end.
  Status run(std::span<const Transfer> given);
  /// The same in steps, for a group of several communicators. `exchange` is new. If it throws there
  /// is no memory.
  void prepare(Exchange &exchange, std::span<const Transfer> given);
  /// Of what is prepared. False if the communicator has failed, and nothing was begun.
  bool begin(Exchange &exchange) noexcept;
  /// Returns when it is over, at once if it was not begun. False if the communicator has failed
  /// meanwhile.
  bool end(Exchange &exchange) noexcept;
  /// Begins them and returns; see Transfers::start.
  StatusOr<RequestId> start(std::span<const Transfer> given, const Callback &callback,
                            bool callbackNeverBlocks);

  partitioned::Requests &partitionedRequests() { return partitioned; }
  PartitionedCollectives &partitionedCollectives() { return collectives; }

  /// Runs the device's tasks on the calling thread until the request is complete; its result.
  Status wait(RequestId request);
  /// InProgress, or as wait(). Runs each task at most once, without polling.
  Status test(RequestId request);

  /// Divides the communicator: see Splitter. The new one's daemon, on the same device, or null
  /// without a colour. Not from a callback.
  StatusOr<std::unique_ptr<Daemon>> split(const SplitRequest &request, const Options &options);
  /// A smaller communicator of the ranks that are left, also after a failure: see Shrinker. The new
  /// one's daemon, on the same device.
  StatusOr<std::unique_ptr<Daemon>> shrink(const ShrinkRequest &request, const Options &options);
  /// Of this rank's segment.
  uint64_t segmentBytes() const { return core.fabric->ranks().segment(rank()).size(); }
  const Options &options() const { return core.options; }
  Fabric &fabric() { return *core.fabric; }

  /// Ends everything in flight on all ranks with this cause, unless there is one already. Always
  /// returns.
  void fail(const Status &cause);
  /// Why the communicator has failed; Success if it has not.
  Status failure() const { return core.fabric->failure(); }

  /// Whether the calling thread is inside a callback of this rank.
  bool isCallingBack() const { return core.isCallingBack(); }

  transport::SharedHeap &heap() const { return core.fabric->heap(); }
  const Stats &stats() const { return core.stats; }
  const std::shared_ptr<Device> &device() const { return core.device; }
  RankInsight &insight() { return rankInsight; }
  /// Ids of the sequences that are known, ascending.
  std::vector<uint64_t> sequences() { return admission.sequences(); }
  insight::KnownCollective lookUp(uint64_t id) { return admission.lookUp(id); }
  /// See Admission::inspect.
  template <class Look> bool inspect(uint64_t id, Look look) { return admission.inspect(id, look); }
  /// See Admission::setMostActive.
  void setMostActiveSequences(size_t sequences) { admission.setMostActive(sequences); }

private:
  Status run(const Submission &submission);
  StatusOr<RequestId> submit(const Submission &submission);
  Status learnShape(const Submission &call, const SpecOf &specOf);
  Status awaitRoom(RoomWait &room, Submission &call, const Status &refusal);
  void begin(const Admitted &admitted);
  void runToEnd(const Exchange &exchange, BlockTask *claimed,
                const scheduler::Visit &visit) noexcept;
  void beginOwn(Executor &executor, BlockTask *claimed, const scheduler::Visit &visit);
  Status goOn(OpenInvocation &invocation, const LaneRun &lane);
  Status take(RequestId request);

  Core core;
  Admission admission;
  Transfers transfers;
  partitioned::Requests partitioned;
  PartitionedCollectives collectives;
  Watchdog watchdog;
  Splitter splitter;
  Shrinker shrinker;
  RankInsight rankInsight;
};

} // namespace occl::daemon
