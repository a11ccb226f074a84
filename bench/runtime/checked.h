// Calls of the C interface in measurements: an error ends the program.
#pragma once

#include "runtime/communicator/occl.h"

#include <cstdio>
#include <cstdlib>

namespace occl::bench {

inline void check(occlResult_t result) {
  if (result == occlSuccess)
    return;
  std::fprintf(stderr, "%s: %s\n", occlGetErrorString(result), occlGetLastError());
  std::exit(1);
}

/// The collective under this id, with float elements and everything else at its default.
inline void registerOn(occlComm_t comm, occlPlan_t plan, uint64_t id, uint64_t count,
                       bool callbacksNeverBlock = false) {
  occlCollective_t collective = OCCL_COLLECTIVE_INITIALIZER;
  collective.id = id;
  collective.plans = &plan;
  collective.numPlans = 1;
  collective.count = count;
  collective.callbacksNeverBlock = callbacksNeverBlock;
  check(occlRegister(comm, &collective));
}

} // namespace occl::bench
