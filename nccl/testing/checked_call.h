// For tests: what went wrong in a call, and an all-reduce whose sum is checked.
#pragma once

#include "nccl/nccl_abi.h"

#include <string>

namespace occl::nccl::testing {

/// The function's name, and the last error's text.
inline std::string where(const char *function) {
  return std::string(function) + ": " + ncclGetLastError(nullptr);
}

/// Of rank + 1 on each rank, in host memory, in place: "" or what is wrong.
inline std::string allReduce(ncclComm_t comm, int rank, int numRanks) {
  float value = static_cast<float>(rank) + 1;
  if (ncclAllReduce(&value, &value, 1, ncclFloat32, ncclSum, comm, nullptr) != ncclSuccess)
    return where("ncclAllReduce");
  const auto right = static_cast<float>(numRanks * (numRanks + 1) / 2);
  return value == right ? "" : "the sum is " + std::to_string(value);
}

} // namespace occl::nccl::testing
