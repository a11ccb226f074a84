// A job on a simulated cluster: a rank on each machine joins a communicator, waits until it fails,
// and calls for a smaller one. All of that is the runtime's own code, from meeting over TCP to the
// threads of each rank's network; see docs/machines.md.
#pragma once

#include "runtime/base/status.h"
#include "runtime/control/fabric.h"
#include "test/simulation/tcp_network.h"
#include "test/simulation/world.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace occl::simulation {

struct JobOptions {
  uint32_t numRanks = 2;
  uint64_t seed = 1;
  std::chrono::milliseconds joinTimeout{30000}; // as in occlConfig_t
  std::chrono::milliseconds linkTimeout{1000};  // OCCL_LINK_TIMEOUT_MS
  std::chrono::milliseconds shrinkTimeout{300}; // of each step
  Duration patience = std::chrono::seconds(10); // a rank shrinks then, whether or not it has failed
  Duration longest = std::chrono::seconds(200); // all is over by then, or something hangs
  uint32_t mostShrinks = 1;                     // calls, as long as they time out
};

/// What became of a rank.
struct Rank {
  Duration startsAt{0};
  bool shrinks = true; // else it lives on, and votes
  std::optional<Duration> abortsAt;
  bool isStopped = false; // for some time: then nothing is said of how long it takes
  std::optional<Duration> joinedAt, failedAt, shrinkBegan, shrinkEnded, metAt;
  Status joined, failure, shrunk, met; // valid with the time
  uint32_t newRank = 0, newNumRanks = 0;
};

class Job {
public:
  explicit Job(const JobOptions &options);

  World &world() { return cluster; }
  TcpNetwork &network() { return cluster.network(); }
  std::vector<Rank> ranks;
  /// From now on nothing gets through between these two halves; or again everything.
  void cutApart(const std::vector<bool> &isOnOneSide, bool isCut);
  bool isAlive(uint32_t rank) const {
    return cluster.machine(rank).process != Machine::Process::Killed;
  }
  /// Each rank's program until its end. Empty, or what is wrong whatever may have happened: it
  /// hangs, two groups go on, a call takes longer than it may.
  std::string run();

private:
  void runRank(uint32_t number);
  std::unique_ptr<daemon::Fabric> join(Rank &rank, uint32_t number);
  void awaitFailure(Rank &rank, daemon::Fabric &fabric) const;
  void shrink(Rank &rank, daemon::Fabric &fabric);
  std::string checkGroups() const;
  std::string checkTimes() const;

  const JobOptions options;
  World cluster;
};

} // namespace occl::simulation
