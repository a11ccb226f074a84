// A resident daemon: a kernel that stays on a device as long as there is something to do, and
// executes collectives submitted in any order, of any number of tenants.
#pragma once

#include "runtime/base/status.h"
#include "runtime/cuda/device/shared_streams.h"
#include "runtime/cuda/resident/executor/marks.h"
#include "runtime/cuda/resident/kernel/kernel.h"
#include "runtime/cuda/resident/kernel/resident_collective.h"
#include "runtime/cuda/resident/submission/submission_side.h"
#include "runtime/cuda/resident/submission/tenant.h"
#include "runtime/cuda/resident/trace/clock_probe.h"
#include "runtime/cuda/resident/trace/device_clock.h"
#include "runtime/cuda/resident/trace/mark_events.h"
#include "runtime/cuda/tables/device_collective.h"
#include "runtime/cuda/watch/held_streams.h"
#include "runtime/sync/atomic.h"
#include "runtime/sync/clock.h"
#include "runtime/sync/deadline.h"
#include "runtime/sync/mutex.h"
#include "runtime/sync/thread.h"

#include <cuda_runtime.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace occl::cuda::resident {

struct DaemonOptions {
  int device = 0;
  /// What the collectives need.
  const Kernel *kernel = nullptr;
  Settings settings;
  /// Collectives registered at once.
  uint32_t maxCollectives = 1024;
  /// No executor stays when nothing moves, as long as no stream waits; they come back every kAway,
  /// and look for so long at least.
  bool isStrict = false;
  static constexpr std::chrono::microseconds kAway{1000};
  static constexpr std::chrono::microseconds kLook{500};
};

/// Thread safety: any. No call but make(), add(), detach() and the destructor waits for the device,
/// and these do so for some seconds at most.
/// The kernel runs on streams of its own, of the highest priority, that no other stream waits for:
/// a generation takes the other one if the lookout of the one before is there.
class ResidentDaemon : private HeldStreams::StrictDaemon {
public:
  /// Called once, by whoever finds the request ended: a thread of the daemon, or one that waits.
  using Callback = std::function<void(uint64_t request, const Status &)>;

  /// InvalidArgument or SystemError. All memory is taken and all code loaded here.
  static StatusOr<std::unique_ptr<ResidentDaemon>> make(const DaemonOptions &options);
  /// All tenants have gone. Waits for the kernel to leave, some seconds at most.
  ~ResidentDaemon() override;

  /// The tenant outlives its requests and collectives here. SystemError if there is no thread to be
  /// had.
  Status attach(Tenant &tenant);
  /// What the tenant has open ends with its failure, or Aborted, and the tenant is not called any
  /// more when this returns. Whether nothing of it is executed any more, either: if not, the device
  /// has not reacted for seconds, and what executors may access must stay for good.
  bool detach(Tenant &tenant);

  /// Words of the device for a collective's invocations. Collectives whose invocations are numbered
  /// together, and run one after the other, have the same.
  struct Words {
    /// A BlockCounts for each thread block, or null.
    BlockCounts *counts = nullptr;
    /// Invocations that are complete: the number of the first one at first; null: the collective
    /// has one of its own, and counts from 0.
    uint64_t *done = nullptr;
    /// Of a partitioned collective; else null.
    const PartGates *parts = nullptr;
  };
  /// The number of the collective for enter(). Its memory must stay until remove(). Again if there
  /// are too many, or executors may still have tables of what is to be another's; InvalidArgument
  /// if it has too many thread blocks; SystemError.
  StatusOr<uint32_t> add(Tenant &tenant, const DeviceCollective &collective, const Words &words);
  /// Nothing of it is open.
  void remove(uint32_t collective);
  /// add() has found no number, and none is about to be free: who has some that he does not need is
  /// to remove() them.
  bool wantsNumbers() const;
  /// The same, or some are about to be free. Cheap.
  bool isShortOfNumbers() const {
    const int64_t at = lackedAt.load(std::memory_order_relaxed);
    return at != 0 && Clock::now().time_since_epoch().count() - at < kAsked.count();
  }

  using Clock = SteadyClock;
  struct Order {
    uint32_t collective = 0; // of add()
    uint64_t ordinal = 0;    // of the invocation; they are submitted in order
    uint64_t tag = 0;        // what the tenant calls it
    const void *input = nullptr;
    void *output = nullptr;
    uint8_t priority = 0;
    std::chrono::milliseconds timeout = kNoDeadline;
    /// When it was started, which its time counts from; and, if it had to wait since then, a rank
    /// that it waited for.
    Clock::time_point since = Clock::now();
    std::optional<uint32_t> awaited = std::nullopt;
    /// It begins when a stream opens its gate: letBegin() follows. So does its time.
    bool isGated = false;
  };
  /// The request. Again if the window is full; the daemon's failure if it has failed. Buffers are
  /// memory of the device; what writes the input must be complete when it begins. Not complete
  /// after its timeout: the tenant fails. Asks nothing of CUDA; begin() follows.
  StatusOr<uint64_t> enter(const Order &order, Callback callback = {});
  /// What has entered is executed: starts executors if there are none.
  void begin();
  /// A gated request begins when the stream has come so far. If this fails it never begins.
  Status letBegin(cudaStream_t stream, uint64_t request);
  /// Its stream will never come there: it is to be withdrawn, and others need its place.
  void letGo(uint64_t request);
  /// What follows in the stream waits for the end of a gated request, however that is.
  /// InvalidArgument if the request is not gated.
  Status holdStream(cudaStream_t stream, uint64_t request);
  bool isComplete(uint64_t request) const { return side->isComplete(request); }
  /// Whether there is such a request, complete or not.
  bool isKnown(uint64_t request) const { return request < side->submitted(); }
  /// Of a request that is complete: how it ended; runs its callback unless that was done.
  Status settle(uint64_t request);
  /// settle(), once it is complete; Timeout if that takes longer: the request stays open.
  Status wait(uint64_t request, std::chrono::milliseconds atMost);
  /// Whether it is complete, or the daemon has failed, as soon as that is so, or when so much time
  /// has gone by.
  bool awaitEnd(uint64_t request, std::chrono::microseconds atMost);
  /// The daemon's thread comes by soon, and often as long as a tenant has work for it.
  void attend();
  /// settle() of all that are complete: those that only a stream has waited for.
  void settleComplete();
  /// For who only looks now and then: starts the kernel again if it has left with something open.
  void goOn() { side->restartIfOpen(); }
  /// For a thread that no call of CUDA holds up: if the daemon's own has been in one for long,
  /// which may be waiting for a stream that is held, what of the tenant is late or has failed lets
  /// its streams go on.
  void lookAfter(Tenant &tenant);
  bool hasQuit() const { return side->hasQuit(); }
  /// Waits until the kernel has left because there was nothing to do, or nothing moved.
  Status waitForQuit(std::chrono::milliseconds atMost) const;

  /// Why the daemon itself has failed: it executes nothing any more. Success as long as it has not.
  Status failure() const;

  /// Who waits for what, a line for each blocked thread block: as of when the executors last left.
  std::string describeWaits() const;
  /// How often the kernel was started.
  uint64_t starts() const { return side->starts(); }
  /// As of when the kernel last left.
  uint64_t total(Count what) const { return side->total(what); }

  /// Executors record marks from now on, until as many have called takeMarks() as startMarks(). Has
  /// the kernel leave and come again. InvalidArgument if nobody is attached; Timeout if the device
  /// does not react.
  Status startMarks();
  struct Recording {
    /// By executor: of each the last MarkRing::kMarks, oldest first.
    std::vector<std::vector<MarkView>> executors;
    uint64_t overwritten = 0; // marks that there were besides
    DeviceClock clock;
    /// What the tenant has submitted since it began: the last kTracedRequests of all tenants are
    /// kept.
    std::vector<TracedRequest> requests;
  };
  static constexpr uint32_t kTracedRequests = 1u << 15;
  /// InvalidArgument if none are recorded; else as startMarks().
  StatusOr<Recording> takeMarks(const Tenant &tenant);

private:
  struct Registered {
    Tenant *tenant = nullptr; // null: free
    uint32_t numBlocks = 0;
    uint8_t home = 0;
  };
  struct Waiting {
    Tenant *tenant = nullptr;
    InvocationName invocation;
    Clock::time_point since, deadline;
    Callback callback;
    std::chrono::milliseconds timeout{};
    bool isGated = false, hasBegun = true;
    bool isReleased = false; // its streams go on, and it will be withdrawn
    bool isReported = false; // that it takes long
    /// That wait for it: CUDA's numbers.
    std::vector<unsigned long long> streams;
  };
  using Requests = std::map<uint64_t, Waiting>;

  explicit ResidentDaemon(const DaemonOptions &options)
      : options(options), heldOnDevice(heldStreamsOn(options.device)) {
    tenants[&gone] = true;
  }
  /// Whose are requests that could not be withdrawn before their tenant went.
  class Gone : public Tenant {
  public:
    bool hasFailed() const override { return true; }
    Status failure() const override { return {StatusCode::Aborted, "its communicator has gone"}; }
    void fail(const Status &) override {}
    void endLate(const InvocationName &, std::span<const TenantWait>) override {}
    void reportLate(const InvocationName &) override {}
    bool isAsked() const override { return false; }
    void look(std::span<const TenantWait>) override {}
    void ended(const InvocationName &, const Status &, std::chrono::nanoseconds) override {}
  };
  /// Of the marks; what is to be done by the daemon's thread is one of Starting, Reading, Stopping.
  enum class Marks : uint8_t { Off, Starting, On, Reading, Stopping };

  Status start();
  Status allocate();
  Status turnMarks(std::unique_lock<Mutex> &lock, Marks through);
  Status awaitMarks(std::unique_lock<Mutex> &lock);
  void turnMarksNow();
  StatusOr<ClockSample> readClock();
  StatusOr<std::vector<MarkRing>> readMarks();
  Status upload(void *to, const void *from, uint64_t bytes);
  void launch(uint64_t generation, bool beside);
  StatusOr<bool> noteHeld(uint64_t request, unsigned long long stream);
  void letAllLeave(bool may) override { side->stayFor(may ? StayFor::Nothing : StayFor::Anything); }
  bool ensureLookout() override { return side->ensureLookout(); }
  StatusOr<uint32_t> takeNumber();

  // The daemon's thread: keeping.cpp.
  void keep();
  void keepOnce();
  void noteBegun();
  void countHeldStreams();
  void releaseLateStreams();
  void releaseLateStreamsOf(Tenant &tenant);
  bool mustStop() const;
  bool isAnyAtWork() const;
  void stopAndLook();
  bool areGone() const;
  Status ensureStreams();
  bool awaitGone(std::chrono::milliseconds atMost) const;
  void breakDown();
  bool endTenant(Tenant &tenant, std::unique_lock<Mutex> &lock);
  void callTenant(Tenant &tenant, const std::function<void()> &call);
  void lookAtDevice();
  void turnMarksOff(const Status &cause);
  void reportLongWaits();
  void lookAtWaits();
  void endLate();
  void endLateOf(Tenant &tenant);
  void withdrawFailed();
  Callback end(Requests::iterator open, const Status &outcome);
  void trace(uint64_t request, const Order &order);
  void traceEnd(uint64_t request, StatusCode outcome);
  Status badEndOf(const Waiting &open) const;
  std::vector<TenantWait> waitsOf(const Tenant &tenant) const;
  std::vector<Tenant *> allTenants() const;

  const DaemonOptions options;
  HeldStreams &heldOnDevice;
  cudaStream_t streams[2] = {nullptr, nullptr}; // made before anything is executed
  Atomic<bool> haveStreams{false};
  cudaStream_t copies = nullptr; // shared
  Atomic<uint32_t> current{0};   // the stream of the last generation
  HostPage *page = nullptr;
  Board *board = nullptr;                    // of the device
  MarkRing *marks = nullptr;                 // of the device, by executor
  ClockProbe *probe = nullptr;               // of the host
  ResidentCollective *collectives = nullptr; // of the device
  std::unique_ptr<SubmissionSide> side;

  Atomic<bool> isMarking{false};
  Mutex copying; // guards `copied`, and the making of streams
  StreamEnd copied;
  Mutex calling;       // held by its thread while it calls a tenant; taken before `mutex`
  mutable Mutex mutex; // guards all below
  mutable ConditionVariable changed;
  bool isOver = false;
  Status failed;
  Marks marksState = Marks::Off;
  Status marksOutcome;         // of the last change
  uint32_t numMarking = 0;     // have begun, and not ended
  std::vector<MarkRing> taken; // when they were last read
  ClockSample clockAtFirst, clockAtLast;
  struct Traced {
    const Tenant *tenant;
    TracedRequest request;
  };
  std::deque<Traced> traced;          // while marks are recorded, without a gap
  std::vector<Registered> registered; // by number
  /// Numbers that may be used again by executors of a later generation than this: earlier ones may
  /// have kept tables of what had the number.
  std::deque<std::pair<uint32_t, uint64_t>> freed;
  Atomic<uint64_t> numFreed{0}; // ever
  /// When add() last found none; 0: never. Whoever needs one tries again and again.
  Atomic<int64_t> lackedAt{0};
  static constexpr Clock::duration kAsked = std::chrono::milliseconds(50);
  std::map<Tenant *, bool> tenants; // and whether they are leaving
  Gone gone;                        // one of them, always
  Requests waiting;                 // by request
  uint32_t numCallbacks = 0;        // of these, that have one
  /// Requests that did not end well, until their tenant goes.
  std::map<uint64_t, std::pair<Tenant *, Status>> badEnds;
  Clock::time_point lastSubmission{};
  bool isKeeping = false; // its thread may call tenants
  Clock::time_point keepingSince{};
  // Of its thread.
  uint64_t lookedAtStart = 0, lookedAtPublished = 0; // when it last looked at waits
  uint32_t heldStreams = 0;                          // as it has said
  Clock::time_point nextLookAtDevice{}, nextReport{};
  bool isHolding = false; // executors are to leave, and have not yet
  Thread keeper;
};

} // namespace occl::cuda::resident
