// OCCL_STATS as a table with three lines for each collective: name, numbers, waits.
#include "runtime/api/metrics/stats_text.h"

#include "support/text/wrapped.h"

#include <array>
#include <cstdio>

namespace occl::communicator {

namespace {

constexpr std::array<const char *, occlNumWaitReasons> kReasons = {"announce",   "data",   "credit",
                                                                   "dependency", "signal", "begin"};

double micros(uint64_t nanoseconds, uint64_t times) {
  return times == 0 ? 0 : static_cast<double>(nanoseconds) / 1e3 / static_cast<double>(times);
}

double perInvocation(uint64_t count, uint64_t times) {
  return times == 0 ? 0 : static_cast<double>(count) / static_cast<double>(times);
}

/// "data 12.3 us (40), credit ...": the time and number of waits an invocation.
std::string describeBlockWaits(const occlBlockStats_t &blocks, uint64_t times) {
  std::string text;
  for (size_t r = 0; r < kReasons.size(); ++r) {
    if (blocks.waits[r] == 0)
      continue;
    char wait[96];
    std::snprintf(wait, sizeof wait, "%s%s %.1f us (%.1f)", text.empty() ? "" : ", ", kReasons[r],
                  micros(blocks.waitNs[r], times), perInvocation(blocks.waits[r], times));
    text += wait;
  }
  return text.empty() ? "none" : text;
}

} // namespace

std::string describeStats(uint32_t rank, uint32_t numRanks,
                          const std::vector<NamedStats> &collectives) {
  constexpr size_t kIndent = 6;
  // Names are of any length and stay out of the fixed buffer.
  char line[512];
  std::snprintf(line, sizeof line, "%7s%10s%10s%10s%10s%8s%10s%8s%7s\n", "times", "total us",
                "start us", "peers us", "run us", "visits", "preempted", "slices", "queue");
  std::string text =
      wrapped("OCCL: rank " + std::to_string(rank) + " of " + std::to_string(numRanks) +
                  ": means over the invocations; waits are sums over the thread blocks, their "
                  "number in brackets\n",
              kIndent) +
      line;
  for (const NamedStats &stats : collectives) {
    const occlCollectiveStats_t &collective = stats.collective;
    const occlBlockStats_t &blocks = stats.blocks;
    // Means are over completed invocations.
    uint64_t times = collective.completed;
    if (collective.submitted == 0)
      continue;
    std::snprintf(line, sizeof line, "%7llu%10.1f%10.1f%10.1f%10.1f%8.1f%10.1f%8.1f%7.1f\n",
                  static_cast<unsigned long long>(times), micros(collective.finishNs, times),
                  micros(collective.startNs, times), micros(collective.announceNs, times),
                  micros(blocks.runningNs, times), perInvocation(blocks.contextLoads, times),
                  perInvocation(blocks.preemptions, times), perInvocation(blocks.slices, times),
                  perInvocation(collective.queueLengths, times));
    text += stats.name + ":\n" + line +
            wrapped("      waits: " + describeBlockWaits(blocks, times) + "\n", kIndent + 7);
  }
  return text;
}

} // namespace occl::communicator
