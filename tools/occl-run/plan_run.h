// Executes a plan on real data, checks the result, measures the time.
#pragma once

#include "runtime/api/occl.h"

#include <chrono>
#include <cstdint>
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
};

/// Prints what it did; returns the exit status: 0 only if every rank succeeded and, with check,
/// every element was right.
int runPlan(const PlanRunOptions &options);

} // namespace occl::run
