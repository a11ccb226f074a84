// Asks all ranks at once for their waits, and collects the answers.
#include "runtime/observe/report/ask_ranks.h"

#include "runtime/sync/clock.h"
#include "runtime/sync/thread.h"

#include <chrono>

namespace occl::daemon {

namespace {

using namespace std::chrono_literals;

/// Executors that wait sleep no longer than 20 ms, and look every 5 ms while they do not sleep; the
/// daemons of a rank on a device look every 5 ms, too, and have their kernels leave first.
constexpr auto kPatience = 50ms;
/// Ranks of other machines answer within 40 ms, whether theirs have looked or not.
constexpr auto kPatienceBetweenMachines = 200ms;
constexpr auto kBetweenLooks = 200us;

} // namespace

std::vector<insight::RankReport> askRanks(const Fabric &fabric,
                                          const std::function<void()> &publishOwn) {
  std::vector<insight::RankReport> ranks(fabric.numRanks());
  std::vector<uint32_t> numbers(fabric.numRanks());
  // Ask all ranks before waiting for any.
  for (uint32_t r = 0; r < numbers.size(); ++r) {
    numbers[r] = fabric.of(r).words().askForReport();
    if (fabric.hasLeft(r))
      ranks[r].note = "has destroyed its communicator";
    else if (fabric.isDead(r))
      ranks[r].note = "is gone: its process does not exist any more";
    else if (!fabric.isLocal(r))
      fabric.doorbells()[r]->ring(); // on which the thread sleeps that asks
  }
  publishOwn();
  auto begin = SteadyClock::now();
  for (uint32_t r = 0; r < ranks.size(); ++r) {
    const transport::SegmentHeader &header = fabric.of(r).header();
    const auto patience = fabric.isLocal(r) ? kPatience : kPatienceBetweenMachines;
    // A rank that is gone does not answer, but its last waits are shown.
    do
      ranks[r].isFresh = header.hasAnswered(numbers[r]);
    while (!ranks[r].isFresh && ranks[r].note.empty() && SteadyClock::now() - begin < patience &&
           (sleepFor(kBetweenLooks), true));
    ranks[r].edges = header.waitEdges.read().edges;
    if (!ranks[r].isFresh && !fabric.isLocal(r) && ranks[r].note.empty())
      ranks[r].note = "is on another machine and has not answered";
  }
  return ranks;
}

} // namespace occl::daemon
