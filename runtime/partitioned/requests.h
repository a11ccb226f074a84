// The partitioned requests of a communicator's rank: made, started, marked, waited for and freed.
// docs/decisions/hosts/partitioned.md has the protocol.
#pragma once

#include "runtime/partitioned/matching.h"
#include "runtime/partitioned/request.h"
#include "runtime/sched/core.h"
#include "runtime/sync/light_mutex.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>

namespace occl::partitioned {

/// Whether a communicator has `what`, "partitioned transfers" or others. InvalidArgument.
Status checkCommunicator(const daemon::Core &core, const std::string &what);
/// Whether some rank of so many could have such a request, on whatever it is. InvalidArgument.
Status checkTerms(const Terms &terms, uint32_t numRanks);

/// Thread safety: ready() and arrived() are for any thread, also beside each other, start(), test()
/// and wait(); of a request one thread at a time is in one of start(), test(), wait(), prepare()
/// and release(), and none in any other function during release().
class Requests {
public:
  explicit Requests(daemon::Core &core);
  ~Requests();

  /// Local. InvalidArgument; Again: see Matching::add; or why the communicator has failed.
  StatusOr<Request *> make(Terms terms);
  /// The next epoch. InvalidArgument: the last one has not been waited for.
  Status start(Request &request);
  /// Marks partitions [range.begin, range.end), or those of the list. Nothing is marked if one is
  /// none; one that is ready already is an error, and all others are marked.
  Status ready(Request &request, plan::Range range);
  Status ready(Request &request, std::span<const int64_t> list);
  /// Whether partition q has arrived; true without an epoch, unless the communicator has failed:
  /// then why.
  StatusOr<bool> arrived(Request &request, int64_t q);
  /// InProgress, or the epoch's result: then there is none any more. Success without one.
  Status test(Request &request);
  Status wait(Request &request);
  /// Returns when the peer has begun the epoch.
  Status prepare(Request &request);
  /// InvalidArgument: it has an epoch.
  Status release(Request &request);

  /// From time to time: takes what peers have told.
  void tidy();

private:
  Status check(const Terms &terms) const;
  Request *keep(std::unique_ptr<Request> made);
  void drop(Request &request);
  template <class Partitions> Status mark(Request &request, const Partitions &partitions);
  Status ended(Request &request);
  Status prepareOver(Request &request, uint64_t epoch);
  Status fail(const Status &cause);

  daemon::Core &core;
  Matching matching;
  daemon::Collective sends, receives; // shapes of their invocations
  LightMutex mutex;                   // guards below
  std::unordered_map<Request *, std::unique_ptr<Request>> all;
};

} // namespace occl::partitioned
