// Which ranks run on which machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace occl::run {

struct Place {
  std::string host;   // as ssh takes it
  uint32_t slots = 0; // how many ranks it may have; 0: not said
  uint32_t firstRank = 0, numRanks = 0;
};

/// Of "a,b" or "a:4,b:2", in which an IPv6 address has brackets. Ranks have consecutive numbers on
/// each host; without slots they are shared out evenly, the first hosts having one more; with slots
/// hosts are filled in turn, and one without has one. numRanks 0: as many as there are slots. Empty
/// and an error in `problem` if they cannot be placed.
std::vector<Place> placeRanks(const std::string &hosts, uint32_t numRanks, std::string &problem);

} // namespace occl::run
