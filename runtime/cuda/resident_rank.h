// A communicator's rank on its device's resident daemons: what occlSubmit, occlWait and callbacks
// come to on CUDA devices.
#pragma once

#include "runtime/base/atomic.h"
#include "runtime/base/mutex.h"
#include "runtime/base/status.h"
#include "runtime/base/tick_clock.h"
#include "runtime/cuda/device_rank.h"
#include "runtime/cuda/registration.h"
#include "runtime/cuda/resident/resident_set.h"
#include "runtime/daemon/deadlock.h"
#include "runtime/daemon/device.h"
#include "runtime/daemon/fabric.h"
#include "runtime/daemon/request_table.h"
#include "runtime/insight/known_collective.h"
#include "runtime/insight/trace.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace occl::cuda {

/// Thread safety: any, but for the destructor.
class ResidentRank {
public:
  struct Options {
    int device = 0;
    uint32_t numExecutors = 0; // 0: what the daemons have, or the default
    std::optional<bool> isStrict;
    /// Of collectives without a timeout of their own.
    std::chrono::milliseconds timeout = kNoDeadline;
    /// Of whom the daemons are shared, who says whether they preempt, and whose threads run
    /// callbacks.
    std::shared_ptr<daemon::Device> scheduler;
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
  /// Waits until nothing is open and all callbacks have returned: no longer than deadlines and
  /// callbacks take.
  void drain();

  /// The id may be submitted; its connectors are taken with the first submission.
  void add(const daemon::CollectiveSpec &spec);
  /// See ResidentDaemon::lookAfter().
  void lookAfter();
  /// What is complete counts as complete, though only streams have waited for it. Runs callbacks.
  void settleComplete();
  /// Unknown ids are nothing to do. InvalidArgument if invocations are in flight.
  Status remove(uint64_t id);

  /// after: if any, in the order of that stream, which nobody captures.
  StatusOr<daemon::RequestId> submit(uint64_t id, const void *input, void *output,
                                     std::optional<cudaStream_t> after,
                                     const daemon::Callback &callback);
  Status wait(daemon::RequestId request);
  Status test(daemon::RequestId request);
  bool isCallingBack() const;

  std::string report();
  /// What of it was last seen to wait for the rank; "" if nothing was.
  std::string describeWaitFor(uint32_t peer);
  std::string nameOf(uint64_t id) { return lookUp(id).name; }
  insight::KnownCollective lookUp(uint64_t id);
  std::vector<uint64_t> registered();
  StatusOr<CollectiveCounts> counts(uint64_t id);
  RankCounts totals();
  /// See DeviceRank.
  Status startTrace();
  StatusOr<insight::Trace::Recording> stopTrace();

private:
  struct Known;
  struct Call;
  struct CallScope;

  /// This rank as a tenant of the daemon with one of the kernels.
  class Share : public resident::Tenant {
  public:
    Share(ResidentRank &rank, uint32_t kernel) : rank(rank), kernel(kernel) {}
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
    Atomic<bool> isAttached{false};
    Atomic<uint32_t> lookedFor{0}; // what was asked when it last looked
    // Under the rank's lookMutex.
    std::vector<transport::WaitEdge> edges;
    std::map<std::pair<uint64_t, uint64_t>, uint64_t> missing; // by invocation: ranks as bits
  };

  ResidentRank(daemon::Fabric &fabric, const Options &options, const ShapeContext &context);
  resident::ResidentDaemon &daemonOf(uint32_t kernel) { return set->daemon(kernel); }
  Status attach(uint32_t kernel);
  StatusOr<insight::Trace::Recording> stopTraceOf(const Share &share);
  StatusOr<Known *> find(uint64_t id);
  Status ensureResident(Known &known);
  Status addToDaemon(Known &known);
  Status checkBuffers(const Known &known, const void *input, const void *output) const;
  StatusOr<std::pair<uint32_t, uint64_t>> place(daemon::RequestId request);
  void ended(uint64_t id, const Status &outcome, std::chrono::nanoseconds after);
  void take(Call *call);
  void callBack(std::unique_ptr<Call> call);
  static void callBackOnThread(void *call, uint32_t);
  uint64_t countOpen();

  // What it waits for: resident_insight.cpp.
  transport::WaitEdge edgeOf(const resident::TenantWait &wait,
                             std::span<const transport::WaitEdge> before) const;
  void publish();
  void forgetWaits();
  void checkPeers();
  void checkDeadlock();
  std::string describeWaitForLocked(uint32_t peer);
  Status countBlocks(const Known &known, CollectiveCounts &counted);
  static void addTo(RankCounts &sum, const CollectiveCounts &counted);

  daemon::Fabric &fabric;
  const Options options;
  const ShapeContext context;
  std::shared_ptr<resident::ResidentSet> set;
  std::array<std::unique_ptr<Share>, resident::kNumKernels> shares;

  /// Guards what is attached, and the trace; one thread makes a collective resident at a time.
  Mutex registering;
  bool isTracing = false;
  Ticks tracedSince = 0;
  Mutex mutex;                                            // guards all below
  std::map<uint64_t, std::unique_ptr<Known>> collectives; // by id
  RankCounts past;                                        // of those that are gone
  std::deque<std::unique_ptr<Call>> calls;                // of callbacks that never block
  bool isCalling = false;

  Atomic<uint32_t> callsUnderWay{0};

  Mutex lookMutex; // guards all below and the segment's wait edges
  Ticks nextPeerCheck = 0;
  std::vector<bool> seenLeft; // by rank: had left at the last check, and was waited for
  daemon::DeadlockDetector detector;
  Atomic<bool> hasPublished{false};
};

} // namespace occl::cuda
