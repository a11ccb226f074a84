// How long collectives take on this machine with one of the library's plans.
#pragma once

#include "runtime/plan_library/plan_library.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace occl::tune {

struct Case {
  plan_library::Kind kind = plan_library::Kind::AllReduce;
  uint32_t numRanks = 2;
  std::vector<uint64_t> sizes; // of a part, in bytes: multiples of 4, ascending
};

/// Microseconds of a collective for each size, with a process for each rank and the plan that
/// `table` (the text of a plan table) chooses. Nothing after an error, which was printed to
/// standard error.
std::optional<std::vector<double>> measure(const Case &of, const std::string &table);

} // namespace occl::tune
