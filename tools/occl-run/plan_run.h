// Executes a plan on real data, checks the result, measures the time.
#pragma once

#include "runtime/api/occl.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

namespace occl::run {

struct PlanRunOptions {
  std::string plan;         // path
  uint32_t numRanks = 0;    // 0: as many as the plan is for
  uint64_t count = 1 << 20; // elements of a part
  occlDataType_t type = occlFloat32;
  occlRedOp_t op = occlSum;
  bool inPlace = false;
  uint32_t iterations = 10;
  bool check = true;
  bool threads = false; // ranks are threads of this process instead of processes
  bool preemption = true;
  uint32_t seed = 1;
  std::chrono::milliseconds grace{5000};
  /// Starts so many ranks, each of which calls runPlanAsRank(), elsewhere than in children of this
  /// process; its result is the exit status.
  std::function<int(uint32_t numRanks)> startElsewhere;
};

/// Prints what it did; returns the exit status: 0 only if every rank succeeded and, with check,
/// every element was right.
int runPlan(const PlanRunOptions &options);

/// In a process that was started as one of the ranks, which share no memory: rank 0 prints.
int runPlanAsRank(const PlanRunOptions &options);

} // namespace occl::run
