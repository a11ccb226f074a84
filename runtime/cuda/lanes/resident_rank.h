// A communicator's rank on its device's resident daemons: what occlStart, occlWait and callbacks
// come to on CUDA devices. Calls are executed in lanes: docs/decisions/gpu/lanes.md.
#pragma once

#include "runtime/base/status.h"
#include "runtime/base/tick_clock.h"
#include "runtime/control/fabric.h"
#include "runtime/cuda/device_rank.h"
#include "runtime/cuda/lanes/device_lanes.h"
#include "runtime/cuda/lanes/lane_calls.h"
#include "runtime/cuda/resident/resident_set.h"
#include "runtime/cuda/scaling/scaled_inputs.h"
#include "runtime/observe/deadlock/deadlock.h"
#include "runtime/observe/report/known_collective.h"
#include "runtime/observe/trace/trace.h"
#include "runtime/queue/request_table.h"
#include "runtime/sched/device.h"
#include "runtime/sync/atomic.h"
#include "runtime/sync/clock.h"
#include "runtime/sync/deadline.h"
#include "runtime/sync/mutex.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace occl::cuda {

/// What all ranks say alike of a call; kind: the API's value. Of a plan that reduces nothing they
/// may name any operation: it becomes a sum.
LaneSignature agreeOn(daemon::CollectiveSpec &spec, uint8_t kind, uint32_t root);

/// Thread safety: any, but for the destructor.
class ResidentRank {
public:
  struct Options {
    int device = 0;
    uint32_t numExecutors = 0; // 0: what the daemons have, or the default
    std::optional<bool> isStrict;
    /// Of collectives without a timeout of their own.
    std::chrono::milliseconds timeout = kNoDeadline;
    /// Of whom the daemons are shared, who says whether they preempt and by which policies,
    /// and whose threads run callbacks.
    std::shared_ptr<daemon::Device> scheduler;
    /// The number of the first call in each lane.
    uint64_t firstCall = 0;
    /// Of all ranks: in memory that they share.
    LaneBoard *board = nullptr;
    ScaledInputs *inputs = nullptr;
  };

  /// All memory is taken and all kernels loaded here. InvalidArgument, SystemError.
  static StatusOr<std::unique_ptr<ResidentRank>>
  make(daemon::Fabric &fabric, const Options &options, const ShapeContext &context);
  /// As detach().
  ~ResidentRank();
  /// What is open ends, within seconds. Whether nothing of it is executed any more afterwards; if
  /// not, the device has not reacted, and abandon() is to follow.
  bool detach();
  /// What kernels have of the daemons is never freed.
  void abandon();
  /// Waits until nothing is open, until then at most, and all callbacks have returned.
  void drain(const Deadline &deadline);
  /// How long that may take: to the deadlines of all requests so far, and for the device to react.
  std::chrono::milliseconds drainPatience() const;
  /// Requests that have not ended.
  uint64_t countOpen();

  /// See ResidentDaemon::lookAfter().
  void lookAfter();
  /// What is complete counts as complete, though only streams have waited for it. Runs callbacks.
  void settleComplete();
  struct Order {
    const daemon::CollectiveSpec &spec;
    LaneSignature signature;
    const void *input = nullptr;
    void *output = nullptr;
    InputFactor factor;
    /// It begins when the stream, which nobody captures, has come so far.
    std::optional<cudaStream_t> after;
    daemon::Callback callback;
    /// Of an epoch of a partitioned collective, which begins after a stream and reads its input
    /// where it is; else null.
    const PartGates *parts = nullptr;
    /// Puts into that stream what comes before the epoch's begin, once others count on it.
    std::function<Status()> begin = {};
    std::function<void()> ended = {}; // by the daemon's thread or who waits
    uint64_t epoch = 0;               // for reports
  };
  /// Starts a call; see DeviceRank::start().
  StatusOr<daemon::RequestId> start(const Order &order);
  /// What follows in the stream, which nobody captures, waits for the end of the request, which was
  /// started after a stream: else InvalidArgument.
  Status holdStream(cudaStream_t stream, daemon::RequestId request);
  /// What a partitioned collective would need is made: so that its first epoch need not wait for
  /// that. InvalidArgument: it cannot be executed; Again, SystemError.
  Status prepare(const Order &order);
  /// The plan as lanes would execute it, without tables. InvalidArgument, InvalidPlan.
  StatusOr<std::shared_ptr<const interpreter::Binding>>
  bind(const daemon::CollectiveSpec &spec) const {
    return lanes.bind(spec);
  }
  /// Whether the persistent kernel can execute the plan, with at most so many thread blocks on any
  /// rank. InvalidArgument.
  Status fits(const daemon::CollectiveSpec &spec, uint32_t mostBlocks) const {
    return lanes.fits(spec, mostBlocks);
  }
  /// A partitioned collective is over, and has no epoch: nothing of `parts` is used any more.
  void forget(uint64_t id, const PartGates *parts);
  /// Epochs of partitioned collectives that the communicator can have in flight at a time: of each
  /// kernel's lanes half are left for other calls.
  uint32_t mostEpochs() const { return std::max(1u, lanes.numbers().small / 2); }
  /// Of each of the kernels.
  uint32_t numExecutors() const { return set->numExecutors(); }
  Status wait(daemon::RequestId request);
  Status test(daemon::RequestId request);
  bool isCallingBack() const;

  std::string report();
  /// What of it was last seen to wait for the rank; "" if nothing was.
  std::string describeWaitFor(uint32_t peer);
  std::string nameOf(uint64_t id) { return lookUp(id).name; }
  insight::KnownCollective lookUp(uint64_t id);
  /// Ids of what was started, but for those that have ended long ago; ascending.
  std::vector<uint64_t> ids();
  StatusOr<CollectiveCounts> counts(uint64_t id);
  RankCounts totals();
  /// See DeviceRank.
  Status startTrace();
  StatusOr<insight::Trace::Recording> stopTrace();

private:
  struct Call;
  struct CallScope;
  struct Started;
  struct Sequence;
  using Sequences = std::map<uint64_t, std::unique_ptr<Sequence>>;
  class EndUnderWay;
  class Engine;
  using Clock = SteadyClock;

  /// This rank as a tenant of the daemon with one of the kernels.
  class Share : public resident::Tenant {
  public:
    Share(ResidentRank &rank, uint32_t kernel) : rank(rank), kernel(kernel) {}
    bool hasWork() const override { return kernel == 0 && rank.hasWork(); }
    std::function<void()> comeBy() override {
      if (kernel != 0)
        return {};
      auto ended = rank.tryToAdvance();
      if (ended.empty())
        return {};
      // Until they have been called the rank stays: callsUnderWay.
      return [of = &rank, ended = std::move(ended)] { of->callAll(ended); };
    }
    bool hasFailed() const override { return rank.fabric.failed(); }
    Status failure() const override { return rank.fabric.failure(); }
    void fail(const Status &cause) override {
      rank.fabric.fail(
          {cause.code(), "rank " + std::to_string(rank.fabric.rank()) + ": " + cause.message()});
    }
    void endLate(const resident::InvocationName &invocation,
                 std::span<const resident::TenantWait> waits) override;
    void reportLate(const resident::InvocationName &invocation) override;
    bool isAsked() const override;
    void look(std::span<const resident::TenantWait> waits) override;
    void ended(const resident::InvocationName &invocation, const Status &outcome,
               std::chrono::nanoseconds after) override {
      rank.ended(invocation.collective, outcome, after);
    }

    std::string describeLate(const resident::InvocationName &invocation, const std::string &what);

    ResidentRank &rank;
    const uint32_t kernel;
    Atomic<bool> isKnown{false};    // to the daemon, which may call it
    Atomic<bool> isAttached{false}; // known, and ready for calls
    Atomic<uint32_t> lookedFor{0};  // what was asked when it last looked
    // Under the rank's lookMutex.
    std::vector<transport::WaitEdge> edges;
    std::map<std::pair<uint64_t, uint64_t>, uint64_t> missing; // by invocation: ranks as bits
  };

  ResidentRank(daemon::Fabric &fabric, const Options &options, const ShapeContext &context);
  resident::ResidentDaemon &daemonOf(uint32_t kernel) { return set->daemon(kernel); }
  Status attach(uint32_t kernel);
  StatusOr<insight::Trace::Recording> stopTraceOf(const Share &share);
  StatusOr<resident::ResidentDaemon *> attachedDaemon(uint32_t kernel);
  StatusOr<std::pair<uint32_t, uint64_t>> place(daemon::RequestId request);
  void ended(uint64_t id, const Status &outcome, std::chrono::nanoseconds after);

  // Starting: resident_calls.cpp; the queue of what waits for a lane: resident_queue.cpp.
  Status checkBuffers(const LaneShape &shape, const std::string &name, const void *input,
                      const void *output) const;
  StatusOr<std::unique_ptr<Started>> makeCall(const Order &order);
  Status takeScaled(std::unique_lock<Mutex> &lock, Started &call);
  Status scaleNow(std::unique_lock<Mutex> &lock, Started &call);
  void endScaled(const Scaling &scaling, bool isOver);
  StatusOr<daemon::RequestId> place(std::unique_ptr<Started> call);
  StatusOr<bool> insistOn(Started &call);
  Status letBegin(const Order &order, const Scaling &scaling, daemon::RequestId request);
  void noteStarted(const Started &call);
  void forgetStarted(uint64_t id);
  void forgetOldSequences();
  bool forgetSequence(Sequences::iterator known);
  resident::ResidentDaemon::Callback completionOf(Started &call);
  bool hasWork() const;
  bool isShortOfNumbers() const;
  bool isDue() const;
  void comeBy() { callAll(tryToAdvance()); }
  std::vector<Call *> tryToAdvance();
  std::vector<Call *> advance(std::unique_lock<Mutex> lock);
  std::unique_lock<Mutex> lockToStart();
  StatusOr<bool> tryNow(Started &call);
  Status executeWaiting();
  void notePlaced(const LaneCalls::Calls &executed);
  void noteWaiting();
  void giveNumbersBack();
  Status lookAtQueue();
  Status lookAtWaiting(const std::vector<bool> &isGone, Clock::time_point now);
  transport::WaitEdge edgeOf(const Started &call, uint32_t peer) const;
  std::vector<transport::WaitEdge> edgesOfWaiting();
  std::string describe(const transport::WaitEdge &edge);
  std::string describeWaiting(const Started &call);
  std::vector<Call *> endAll(std::vector<std::unique_ptr<LaneCall>> calls, const Status &outcome);
  Status findPlaced(daemon::RequestId request, daemon::RequestId &placed);
  void forgetDeferred(daemon::RequestId request);
  Status waitInDaemon(daemon::RequestId request);
  Status testInDaemon(daemon::RequestId request, daemon::RequestId given);
  void take(Call *call);
  void callAll(const std::vector<Call *> &ended);
  void callBack(std::unique_ptr<Call> call);
  static void callBackOnThread(void *call, uint32_t);

  // What it waits for: resident_insight.cpp.
  transport::WaitEdge edgeOf(const resident::TenantWait &wait,
                             std::span<const transport::WaitEdge> before) const;
  resident::InvocationName counted(resident::InvocationName invocation);
  void publish();
  void forgetWaits();
  void checkPeers();
  void checkDeadlock();
  std::string describeWaitForLocked(uint32_t peer);
  StatusOr<CollectiveCounts> counts(uint64_t id, std::vector<LaneName> &without);
  Status countBlocks(const Sequence &sequence, bool hasLane, CollectiveCounts &counted);
  static void addTo(RankCounts &sum, const CollectiveCounts &counted);

  daemon::Fabric &fabric;
  const Options options;
  const ShapeContext context;
  std::shared_ptr<resident::ResidentSet> set;
  std::array<std::unique_ptr<Share>, resident::kNumKernels> shares;

  /// Guards what is attached, and the trace.
  Mutex registering;
  bool isTracing = false;
  Ticks tracedSince = 0;

  /// Held by whoever starts calls or executes what waits; taken before all others. Guards what
  /// follows.
  Mutex starting;
  bool isEnding = false;
  DeviceLanes lanes;
  LaneTable table;
  const std::unique_ptr<Engine> engine;
  LaneCalls calls;
  Atomic<Clock::rep> nextLook{0};               // at the queue: time since the clock's epoch
  Atomic<uint32_t> numWaiting{0}, numUnmade{0}; // as calls has them

  Mutex mutex;         // guards all below
  Sequences sequences; // by id
  RankCounts past;     // of those that are forgotten
  /// Requests of calls that had to wait, until they are forgotten: where they are, or how they
  /// ended.
  struct Deferred {
    daemon::RequestId placed = 0; // 0: it waits
    std::optional<Status> outcome;
  };
  std::unordered_map<daemon::RequestId, Deferred> deferred;
  uint64_t numDeferred = 0;
  std::deque<std::unique_ptr<Call>> callbacks; // that never block
  bool isCalling = false;

  Atomic<uint32_t> callsUnderWay{0}; // of callbacks
  Atomic<uint32_t> endsUnderWay{0};  // of calls whose end a daemon will tell this rank
  Atomic<uint32_t> numScaled{0};     // calls in flight whose inputs were scaled
  Atomic<int64_t> longestTimeout{0}; // that a call was given, in milliseconds

  Mutex lookMutex; // guards all below and the segment's wait edges
  Ticks nextPeerCheck = 0;
  std::vector<bool> seenGone; // by rank: was gone at the last check, and waited for
  daemon::DeadlockDetector detector;
  Atomic<bool> hasPublished{false};
};

} // namespace occl::cuda
