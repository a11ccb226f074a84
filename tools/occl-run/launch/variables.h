// What tells a rank its place: OCCL's variables, and those of torchrun, which PyTorch's programs
// look at.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace occl::run {

struct RankPlace {
  uint32_t rank = 0, numRanks = 1;
  uint32_t localRank = 0, numLocalRanks = 1; // among those of its machine
};

/// "NAME=value" each.
std::vector<std::string> variablesOf(const RankPlace &place);

/// Where rank 0 of a program has what all look into, such as PyTorch's store: a free port, "0" or
/// "" if there is none, then nothing. An IPv6 address may be in brackets.
std::vector<std::string> storeVariables(const std::string &address, const std::string &port);

} // namespace occl::run
