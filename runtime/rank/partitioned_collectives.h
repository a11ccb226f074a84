// The partitioned collectives of a communicator's rank: made, started, marked, waited for and
// freed. An epoch is an invocation of a sequence of the request's own; what it may access, and has
// stored, is counted by partitions. docs/decisions/hosts/partitioned-collectives.md has the
// protocol.
#pragma once

#include "runtime/partitioned/collective_parts.h"
#include "runtime/rank/admission.h"
#include "runtime/rank/room_wait.h"
#include "runtime/sched/core.h"
#include "runtime/sync/atomic.h"
#include "runtime/sync/clock.h"
#include "runtime/sync/light_mutex.h"

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>

namespace occl::daemon {

class Daemon;

/// What the program says of a request.
struct PartitionedTerms {
  Signature signature; // no call's that is not partitioned
  CollectiveSpec spec;
  const void *input = nullptr;
  void *output = nullptr;
  uint64_t inputPartitions = 0, outputPartitions = 0;
  CallOptions options;
  const void *factor = nullptr; // as Submission's; read when the request is made
};

/// Of one request. What is not said to be for others is for the thread that starts, tests, waits
/// and frees.
struct PartitionedCollective {
  std::string subject; // "partitioned allreduce, request 3"
  uint64_t id = 0;     // of its sequence
  Signature signature;
  Collective *shape = nullptr; // held
  const void *input = nullptr;
  void *output = nullptr;
  std::string name;
  CallOptions options;
  std::array<std::byte, 8> factor{};
  bool hasFactor = false;
  bool hasInput = false, hasOutput = false; // in this collective, on this rank
  transport::Home *home = nullptr;          // of the arena, for its epochs; null: they need none
  std::unique_ptr<partitioned::CollectiveParts> parts;
  /// The epoch that has been started and not been waited for; 0 without one. For any thread.
  Atomic<uint64_t> active{0};
  uint64_t epoch = 0;      // the last one
  DeferredStart begin;     // of its epoch, if there was no room for that
  bool isDeferred = false; // and it is not known yet that there is
  RequestId request = 0;   // of its invocation; 0 before, and once that has ended
  SteadyClock::time_point deadline;
};

/// Thread safety: as partitioned::Requests.
class PartitionedCollectives {
public:
  PartitionedCollectives(Core &core, Admission &admission, Daemon &daemon);
  ~PartitionedCollectives();

  /// Local; the k-th that a rank makes belongs to the k-th of the others. What is refused has no
  /// number. InvalidArgument, also between machines beyond half as many as there are cells, freed
  /// ones counted; or why the communicator has failed. Again: epochs of all requests
  /// that there are would not have room at a time on the rank where they need most; so ranks that
  /// make and free alike are told alike.
  StatusOr<PartitionedCollective *> make(PartitionedTerms terms);
  /// The next epoch, which begins as soon as there is room. InvalidArgument: the last one has not
  /// been waited for. Again: all of config->maxInFlight are taken, and nothing was done.
  Status start(PartitionedCollective &request);
  /// Marks partitions of the input; see partitioned::Requests::ready.
  Status ready(PartitionedCollective &request, plan::Range range);
  Status ready(PartitionedCollective &request, std::span<const int64_t> list);
  /// Whether partition q of the output has arrived; true without an epoch, unless the communicator
  /// has failed: then why.
  StatusOr<bool> arrived(PartitionedCollective &request, int64_t q);
  /// InProgress, or the epoch's result: then there is none any more. Success without one.
  Status test(PartitionedCollective &request);
  Status wait(PartitionedCollective &request);
  /// Whether epochs that have been started wait for room; begins those for which there is some. See
  /// DeferredStarts::tryAll.
  bool beginDeferred() {
    deferred.tryAll();
    return deferred.areThere();
  }
  /// InvalidArgument: collectives have nothing to prepare.
  static Status prepare(PartitionedCollective &request);
  /// InvalidArgument: it has an epoch.
  Status release(PartitionedCollective &request);

private:
  StatusOr<std::unique_ptr<PartitionedCollective>> build(const PartitionedTerms &terms,
                                                         Collective &shape) const;
  StatusOr<transport::Home *> homeFor(const PartitionedCollective &request);
  Status checkNumber() const;
  Status checkReady(const PartitionedCollective &request) const;
  template <class Partitions>
  Status mark(PartitionedCollective &request, const Partitions &partitions);
  Status ended(PartitionedCollective &request, const Status &result);
  Submission submissionOf(PartitionedCollective &request) const;
  Status submit(PartitionedCollective &request);
  Status begun(PartitionedCollective &request);
  Status awaitBegin(PartitionedCollective &request);
  static bool isLate(const PartitionedCollective &request);
  Status failUnmarked(const PartitionedCollective &request);
  void lookOnce();

  Core &core;
  Admission &admission;
  Daemon &daemon;
  DeferredStarts deferred;
  LightMutex mutex; // guards below
  uint64_t nextNumber = 0;
  std::unordered_map<PartitionedCollective *, std::unique_ptr<PartitionedCollective>> all;
};

} // namespace occl::daemon
