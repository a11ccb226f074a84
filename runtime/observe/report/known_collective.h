// What is known of a collective when something is said about it.
#pragma once

#include "plan/model/plan.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace occl::insight {

struct KnownCollective {
  std::string name;                       // "'grad3' (id 3)"
  std::shared_ptr<const plan::Plan> plan; // null if it is not known here
  uint32_t rounds = 1;                    // that the plan has: plan/transform/rounds.h

  /// "round 5, " of what this thread block of the rank does, if there are several.
  std::string describeRound(uint32_t rank, uint32_t block) const {
    if (rounds == 1 || !plan || rank >= plan->numRanks)
      return "";
    const uint32_t blocks = plan->ranks[rank].numThreadBlocks / rounds;
    return blocks == 0 ? "" : "round " + std::to_string(block / blocks) + ", ";
  }
};
using LookUp = std::function<KnownCollective(uint64_t collective)>;

} // namespace occl::insight
