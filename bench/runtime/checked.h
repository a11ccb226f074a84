// Calls of the C interface in measurements: an error ends the program.
#pragma once

#include "runtime/api/occl.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace occl::bench {

inline void check(occlResult_t result) {
  if (result == occlSuccess)
    return;
  std::fprintf(stderr, "%s: %s\n", occlGetErrorString(result), occlGetLastError());
  std::exit(1);
}

/// A call of a plan with float elements, everything else at its default; the sequence is `id` if it
/// is started.
inline occlCall_t callOf(occlPlan_t plan, const float *input, float *output, uint64_t count,
                         uint64_t id = 0) {
  occlCall_t call = OCCL_CALL_INITIALIZER;
  call.plan = plan;
  call.sendBuffer = input;
  call.recvBuffer = output;
  call.count = count;
  call.id = id;
  return call;
}

/// Starts it without callback.
inline occlRequest_t start(occlComm_t comm, const occlCall_t &call) {
  occlRequest_t request = 0;
  check(occlStart(comm, &call, nullptr, nullptr, &request));
  return request;
}

} // namespace occl::bench
