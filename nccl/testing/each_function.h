// For tests: every function with a communicator, in a call that would be right.
#pragma once

#include "nccl/abi/later.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace occl::nccl::testing {

struct NamedCall {
  std::string name;
  std::function<ncclResult_t(ncclComm_t)> call;
  bool isRefused = false; // OCCL does not do it
};

/// All of names.def that have one, but for ncclGetLastError, which takes any.
inline std::vector<NamedCall> eachFunction() {
  static int x = 0, numbers[8] = {};
  static void *place = nullptr;
  static ncclResult_t state;
  static ncclComm_t made = nullptr;
  static ncclRedOp_t op;
  static ncclUniqueId id;
  static ncclWindow_t window;
  static uint64_t value;
  const auto kInt = ncclInt32;
  return {
      {"ncclAllGather", [=](auto c) { return ncclAllGather(&x, numbers, 1, kInt, c, nullptr); }},
      {"ncclAllReduce",
       [=](auto c) { return ncclAllReduce(&x, &x, 1, kInt, ncclSum, c, nullptr); }},
      {"ncclAlltoAll", [=](auto c) { return ncclAlltoAll(&x, numbers, 1, kInt, c, nullptr); }},
      {"ncclBcast", [=](auto c) { return ncclBcast(&x, 1, kInt, 0, c, nullptr); }},
      {"ncclBroadcast", [=](auto c) { return ncclBroadcast(&x, &x, 1, kInt, 0, c, nullptr); }},
      {"ncclCommCount", [](auto c) { return ncclCommCount(c, &x); }},
      {"ncclCommCuDevice", [](auto c) { return ncclCommCuDevice(c, &x); }},
      {"ncclCommDeregister", [](auto c) { return ncclCommDeregister(c, nullptr); }},
      {"ncclCommFinalize", [](auto c) { return ncclCommFinalize(c); }},
      {"ncclCommGetAsyncError", [](auto c) { return ncclCommGetAsyncError(c, &state); }},
      {"ncclCommRegister", [](auto c) { return ncclCommRegister(c, &x, 4, &place); }},
      {"ncclCommShrink", [](auto c) { return ncclCommShrink(c, &x, 1, &made, nullptr, 0); }},
      {"ncclCommSplit", [](auto c) { return ncclCommSplit(c, 0, 0, &made, nullptr); }},
      {"ncclCommUserRank", [](auto c) { return ncclCommUserRank(c, &x); }},
      {"ncclCommWindowDeregister", [](auto c) { return ncclCommWindowDeregister(c, nullptr); }},
      {"ncclCommWindowRegister",
       [](auto c) { return ncclCommWindowRegister(c, &x, 4, &window, 0); }},
      {"ncclGather", [=](auto c) { return ncclGather(&x, numbers, 1, kInt, 0, c, nullptr); }},
      {"ncclRecv", [=](auto c) { return ncclRecv(&x, 1, kInt, 0, c, nullptr); }},
      {"ncclRedOpCreatePreMulSum",
       [=](auto c) { return ncclRedOpCreatePreMulSum(&op, &x, kInt, ncclScalarHostImmediate, c); }},
      {"ncclRedOpDestroy",
       [](auto c) { return ncclRedOpDestroy(static_cast<ncclRedOp_t>(99), c); }},
      {"ncclReduce", [=](auto c) { return ncclReduce(&x, &x, 1, kInt, ncclSum, 0, c, nullptr); }},
      {"ncclReduceScatter",
       [=](auto c) { return ncclReduceScatter(numbers, &x, 1, kInt, ncclSum, c, nullptr); }},
      {"ncclScatter", [=](auto c) { return ncclScatter(numbers, &x, 1, kInt, 0, c, nullptr); }},
      {"ncclSend", [=](auto c) { return ncclSend(&x, 1, kInt, 0, c, nullptr); }},
      {"ncclCommAbort", [](auto c) { return ncclCommAbort(c); }},
      {"ncclCommDestroy", [](auto c) { return ncclCommDestroy(c); }},
      {"ncclCommGetUniqueId", [](auto c) { return ncclCommGetUniqueId(c, &id); }},
      {"ncclCommMemStats", [](auto c) { return ncclCommMemStats(c, 0, &value); }, true},
      {"ncclCommQueryProperties", [](auto c) { return ncclCommQueryProperties(c, numbers); }, true},
      {"ncclCommResume", [](auto c) { return ncclCommResume(c); }, true},
      {"ncclCommRevoke", [](auto c) { return ncclCommRevoke(c, 0); }, true},
      {"ncclCommSuspend", [](auto c) { return ncclCommSuspend(c, 0); }, true},
      {"ncclDevCommCreate", [](auto c) { return ncclDevCommCreate(c, numbers, numbers); }, true},
      {"ncclDevCommDestroy", [](auto c) { return ncclDevCommDestroy(c, numbers); }, true},
      {"ncclPutSignal",
       [=](auto c) { return ncclPutSignal(&x, 1, kInt, 0, nullptr, 0, 0, 0, 0, c, nullptr); },
       true},
      {"ncclSignal", [](auto c) { return ncclSignal(0, 0, 0, 0, c, nullptr); }, true},
      {"ncclWaitSignal", [](auto c) { return ncclWaitSignal(1, numbers, c, nullptr); }, true},
      {"ncclWinGetUserPtr", [](auto c) { return ncclWinGetUserPtr(c, nullptr, &place); }, true},
  };
}

} // namespace occl::nccl::testing
