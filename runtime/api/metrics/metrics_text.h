// Counters as Prometheus reads them: its text exposition format, version 0.0.4.
#pragma once

#include "runtime/api/occl_insight.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace occl::communicator {

struct SequenceCounters {
  uint64_t id = 0; // OCCL_CALLS: of calls without one
  occlCollectiveStats_t collective{};
  occlBlockStats_t blocks{}; // of all thread blocks together
};

/// What is wrong with a text that is to be labels of the caller's, as job="train",host="a"; "" if
/// it is such a list. Names are those that Prometheus takes, and none that has a meaning here.
std::string whyNoLabels(std::string_view labels);

/// All counters: of the rank, and of each sequence, in the order in which they are given, with its
/// id as a label. `labels` are the caller's, or empty.
std::string metricsText(uint32_t rank, uint32_t numRanks, const occlStats_t &stats,
                        const std::vector<SequenceCounters> &sequences, std::string_view labels);

} // namespace occl::communicator
