// One rank of a plan run.
#pragma once

#include "plan/model/plan.h"
#include "tools/occl-run/plan_run.h"
#include "tools/occl-run/reference.h"
#include "tools/occl-run/scoreboard.h"

#include <cstddef>
#include <optional>
#include <vector>

namespace occl::run {

class PlanRank {
public:
  PlanRank(const PlanRunOptions &options, const plan::Plan &plan, uint32_t rank,
           Scoreboard &scoreboard);

  /// Runs all iterations on `comm`, of which this is a rank. False after an error, which it has
  /// printed.
  bool run(occlComm_t comm);

private:
  bool ok(occlResult_t result, const char *what) const;
  occlCall_t callOf(occlPlan_t plan) const;
  bool iterate(occlComm_t comm, occlPlan_t plan);
  void fillInput();
  void check(uint32_t iteration);

  const PlanRunOptions &options;
  Reference reference;
  uint32_t rank;
  Scoreboard &scoreboard;
  std::vector<std::byte> memory;
  std::byte *input = nullptr, *output = nullptr; // in memory; in place they overlap
  uint64_t inputElements, outputElements;
  std::vector<std::optional<double>> expected;
  bool reportedWrong = false;
};

} // namespace occl::run
