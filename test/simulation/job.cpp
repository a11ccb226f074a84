#include "test/simulation/job.h"

#include "runtime/control/membership/shrink.h"
#include "runtime/net/machine_group.h"
#include "runtime/sync/thread.h"

#include <map>

namespace occl::simulation {

namespace {

using namespace std::chrono_literals;

constexpr uint16_t kPort = 29500;
constexpr uint64_t kArenaBytes = 64 << 10;
constexpr uint32_t kOrderPolicy = 1;
/// As Device::tick does.
constexpr auto kWatchPeriod = 5ms;
/// A rank that is through stays for those that are not.
constexpr auto kStays = 20s;

std::string text(Duration time) {
  return std::to_string(std::chrono::duration<double>(time).count()) + " s";
}

} // namespace

Job::Job(const JobOptions &options)
    : ranks(options.numRanks), options(options), cluster(options.seed) {}

void Job::cutApart(const std::vector<bool> &isOnOneSide, bool isCut) {
  for (uint32_t a = 0; a < options.numRanks; ++a)
    for (uint32_t b = 0; b < options.numRanks; ++b)
      if (isOnOneSide[a] != isOnOneSide[b]) {
        if (isCut)
          network().cut(a, b);
        else
          network().heal(a, b);
      }
}

std::string Job::run() {
  for (uint32_t r = 0; r < options.numRanks; ++r)
    cluster.add([this, r] { runRank(r); });
  std::string defect = cluster.run(options.longest);
  if (defect.empty())
    defect = checkGroups();
  return defect.empty() ? checkTimes() : defect;
}

void Job::runRank(uint32_t number) {
  Rank &rank = ranks[number];
  sleepFor(rank.startsAt);
  const auto fabric = join(rank, number);
  if (!fabric)
    return;
  awaitFailure(rank, *fabric);
  if (rank.shrinks)
    shrink(rank, *fabric);
  sleepFor(kStays);
  fabric->leave();
}

std::unique_ptr<daemon::Fabric> Job::join(Rank &rank, uint32_t number) {
  // As the C API joins a communicator by a name with an address.
  net::MachineGroupOptions group;
  group.rank = number;
  group.numRanks = options.numRanks;
  Address root = TcpNetwork::addressOf(0);
  root.port = kPort;
  group.name = root.text() + "/sixteen characters, or more";
  group.segmentBytes = transport::Segment::bytesFor(kArenaBytes);
  group.orderPolicy = kOrderPolicy;
  group.timeout = options.joinTimeout;
  group.silence = options.linkTimeout;
  group.bell = *bootstrap::SharedBell::makeShared();
  const Deadline deadline(options.joinTimeout);
  auto formed = net::formMachineGroup(group);
  using Joined = StatusOr<std::unique_ptr<daemon::Fabric>>;
  auto fabric = formed.ok() ? daemon::makeFabric(std::move(*formed), kOrderPolicy, deadline, 0)
                            : Joined(formed.status());
  rank.joined = fabric.status();
  rank.joinedAt = cluster.sinceBegin();
  return fabric.ok() ? std::move(*fabric) : nullptr;
}

/// As the watchdog of a rank with a call in flight that waits for all others.
void Job::awaitFailure(Rank &rank, daemon::Fabric &fabric) const {
  const Time end = cluster.now() + options.patience;
  for (; !fabric.failed() && cluster.now() < end; sleepFor(kWatchPeriod)) {
    if (rank.abortsAt && cluster.sinceBegin() >= *rank.abortsAt)
      fabric.fail({StatusCode::Aborted, "a test has aborted it"});
    for (uint32_t r = 0; r < fabric.numRanks() && !fabric.failed(); ++r)
      if (r != fabric.rank() && fabric.isGone(r))
        fabric.fail({StatusCode::PeerFailed, fabric.describeGone(r)});
  }
  if (!fabric.failed())
    return;
  rank.failedAt = cluster.sinceBegin();
  rank.failure = fabric.failure();
}

void Job::shrink(Rank &rank, daemon::Fabric &fabric) {
  daemon::Shrinker shrinker(fabric);
  rank.shrinkBegan = cluster.sinceBegin();
  daemon::ShrinkRequest request;
  request.segmentBytes = transport::Segment::bytesFor(kArenaBytes);
  request.timeout = options.shrinkTimeout;
  std::unique_ptr<daemon::Fabric> smaller;
  for (uint32_t call = 0; call < options.mostShrinks && !smaller; ++call) {
    rank.shrinkBegan = cluster.sinceBegin();
    auto made = shrinker.shrink(request);
    rank.shrunk = made.status();
    if (made.ok())
      smaller = std::move(*made);
    else if (made.status().code() != StatusCode::Timeout)
      break;
  }
  rank.shrinkEnded = cluster.sinceBegin();
  if (smaller) {
    rank.newRank = smaller->rank();
    rank.newNumRanks = smaller->numRanks();
    rank.met = smaller->meet(Deadline(options.shrinkTimeout));
    rank.metAt = cluster.sinceBegin();
  }
  // This rank votes as long as others may have to decide.
  sleepFor(kStays);
  if (smaller)
    smaller->leave();
}

/// All that have got a smaller communicator have got the same one.
std::string Job::checkGroups() const {
  std::map<uint32_t, uint32_t> byNewRank;
  const Rank *first = nullptr;
  for (uint32_t r = 0; r < ranks.size(); ++r) {
    const Rank &rank = ranks[r];
    if (!rank.shrinkEnded || !rank.shrunk.ok())
      continue;
    first = first ? first : &rank;
    const auto [other, isNew] = byNewRank.emplace(rank.newRank, r);
    if (rank.newNumRanks != first->newNumRanks || !isNew)
      return "rank " + std::to_string(r) + " is rank " + std::to_string(rank.newRank) + " of " +
             std::to_string(rank.newNumRanks) + ", rank " + std::to_string(other->second) +
             " goes on in another group";
    // They are in the order of the old ranks.
    if (const auto next = byNewRank.upper_bound(rank.newRank); next != byNewRank.end())
      return "new ranks are in another order";
  }
  return "";
}

std::string Job::checkTimes() const {
  for (uint32_t r = 0; r < ranks.size(); ++r) {
    const Rank &rank = ranks[r];
    if (rank.isStopped)
      continue;
    const std::string who = "rank " + std::to_string(r);
    if (rank.joinedAt && *rank.joinedAt - rank.startsAt > options.joinTimeout + 4s)
      return who + " has joined, or not, after " + text(*rank.joinedAt - rank.startsAt);
    if (rank.shrinkEnded && *rank.shrinkEnded - *rank.shrinkBegan > 10 * options.shrinkTimeout + 2s)
      return who + " has shrunk, or not, after " + text(*rank.shrinkEnded - *rank.shrinkBegan);
  }
  return "";
}

} // namespace occl::simulation
