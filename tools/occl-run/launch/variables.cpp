#include "tools/occl-run/launch/variables.h"

#include <fmt/core.h>

namespace occl::run {

std::vector<std::string> variablesOf(const RankPlace &place) {
  return {fmt::format("OCCL_RANK={}", place.rank),
          fmt::format("OCCL_SIZE={}", place.numRanks),
          fmt::format("RANK={}", place.rank),
          fmt::format("WORLD_SIZE={}", place.numRanks),
          fmt::format("LOCAL_RANK={}", place.localRank),
          fmt::format("LOCAL_WORLD_SIZE={}", place.numLocalRanks)};
}

std::vector<std::string> storeVariables(const std::string &address, const std::string &port) {
  if (port.empty() || port == "0")
    return {};
  const bool hasBrackets = address.size() > 2 && address.front() == '[' && address.back() == ']';
  return {"MASTER_ADDR=" + (hasBrackets ? address.substr(1, address.size() - 2) : address),
          "MASTER_PORT=" + port};
}

} // namespace occl::run
