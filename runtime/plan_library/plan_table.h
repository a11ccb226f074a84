// A user's plan table: other sizes for the library's plans. docs/tools.md describes the file.
#pragma once

#include "runtime/base/status.h"

#include <cstdint>
#include <string>
#include <vector>

namespace occl::plan_library {

/// Of a class, collective, number of ranks and of islands: up to maxBytes the plan with this
/// number, from 1 on, among those that the library has for them.
struct TableRow {
  std::string planClass, collective;
  uint32_t numRanks = 0;   // in all
  uint32_t numIslands = 1; // "2x4": 2, of 4 ranks each
  uint64_t maxBytes = 0;   // ~0: any
  std::string algorithm;   // what that plan must be
  uint32_t number = 0;
  uint32_t line = 0;
};

/// InvalidArgument, with origin and line, if the text is no table, or sizes do not grow.
StatusOr<std::vector<TableRow>> readPlanTable(const std::string &text, const std::string &origin);

} // namespace occl::plan_library
