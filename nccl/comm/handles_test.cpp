// Every function with a handle that is of no communicator, of one that has ended, or of the parent
// process; and every function that OCCL does not do.
#include "nccl/testing/each_function.h"
#include "runtime/api/testing/processes.h"

#include <gtest/gtest.h>

#include <set>

using namespace occl::nccl::testing;
using occl::communicator::testing::Processes;

namespace {

std::string last() { return ncclGetLastError(nullptr); }

ncclComm_t alone() {
  ncclComm_t comm = nullptr;
  EXPECT_EQ(ncclCommInitAll(&comm, 1, nullptr), ncclSuccess) << last();
  return comm;
}

/// Of each function the result, and a text that begins with its name.
void expectAll(ncclComm_t comm, ncclResult_t wanted, const std::set<std::string> &but = {}) {
  for (const NamedCall &function : eachFunction()) {
    if (but.count(function.name))
      continue;
    EXPECT_EQ(function.call(comm), wanted) << function.name << ": " << last();
    EXPECT_EQ(last().rfind(function.name + ": ", 0), 0u) << function.name << ": " << last();
  }
}

const std::set<std::string> kEnds = {"ncclCommAbort", "ncclCommDestroy"};

} // namespace

TEST(Handles, TheListHasEveryFunctionWithACommunicator) {
  // Without one; of ncclCommGrow, whose communicator may be NULL: see grow_test; and windows: see
  // Refused.
  std::set<std::string> missing = {
#define OCCL_NCCL_DONE(name) #name,
#define OCCL_NCCL_REFUSED(name) #name,
#include "nccl/abi/names.def"
  };
  for (const char *name :
       {"ncclCommInitAll", "ncclCommInitRank", "ncclCommInitRankConfig", "ncclCommInitRankScalable",
        "ncclGetErrorString", "ncclGetLastError", "ncclGetUniqueId", "ncclGetVersion",
        "ncclGroupEnd", "ncclGroupSimulateEnd", "ncclGroupStart", "ncclMemAlloc", "ncclMemFree",
        "ncclResetDebugInit", "ncclCommGrow", "ncclGetLsaMultimemDevicePointer",
        "ncclGetPeerDevicePointer"})
    EXPECT_EQ(missing.erase(name), 1u) << name;
  for (const NamedCall &function : eachFunction())
    EXPECT_EQ(missing.erase(function.name), 1u) << function.name;
  for (const std::string &name : missing)
    ADD_FAILURE() << name << " is not in the list";
}

TEST(Handles, OfNoCommunicatorAreInvalid) {
  expectAll(nullptr, ncclInvalidArgument, kEnds); // these are nothing to do
  int x = 0;
  expectAll(reinterpret_cast<ncclComm_t>(&x), ncclInvalidArgument);
  expectAll(reinterpret_cast<ncclComm_t>(uintptr_t{8}), ncclInvalidArgument);
}

TEST(Handles, OfOneThatWasDestroyedOrAbortedAreInvalid) {
  for (const auto end : {ncclCommDestroy, ncclCommAbort}) {
    const ncclComm_t comm = alone();
    ASSERT_EQ(end(comm), ncclSuccess);
    expectAll(comm, ncclInvalidArgument);
    const ncclComm_t next = alone(); // is not taken for it
    expectAll(comm, ncclInvalidArgument);
    EXPECT_EQ(ncclCommDestroy(next), ncclSuccess);
  }
}

TEST(Handles, InsideOfAGroupAreInvalidAsWell) {
  const ncclComm_t comm = alone();
  ASSERT_EQ(ncclCommAbort(comm), ncclSuccess);
  for (const NamedCall &function : eachFunction()) {
    ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    EXPECT_EQ(function.call(comm), ncclInvalidArgument) << function.name;
    ncclGroupEnd();
  }
}

TEST(Handles, OfTheParentProcessAreInvalidUsage) {
  // The parent has one as well that its peers have not come to.
  Processes processes(1, [](uint32_t) -> std::string {
    const ncclComm_t comm = alone();
    ncclUniqueId id;
    ncclComm_t early = nullptr;
    if (ncclGetUniqueId(&id) != ncclSuccess || ncclCommInitRank(&early, 2, id, 0) != ncclSuccess)
      return last();
    Processes child(1, [&](uint32_t) -> std::string {
      std::string wrong;
      for (const ncclComm_t of : {comm, early})
        for (const NamedCall &function : eachFunction()) {
          const bool isEnd = kEnds.count(function.name) > 0;
          const ncclResult_t result = function.call(of);
          if (result != (isEnd ? ncclSuccess : ncclInvalidUsage) ||
              (!isEnd && last().find("forked from") == std::string::npos))
            wrong += function.name + " is " + std::to_string(result) + ": " + last() + "\n";
        }
      return wrong;
    });
    if (child.join(0) != 0)
      return child.wrong(0);
    int x = 5; // the parent goes on
    if (ncclBcast(&x, 1, ncclInt32, 0, comm, nullptr) != ncclSuccess)
      return last();
    return ncclCommAbort(early) == ncclSuccess && ncclCommDestroy(comm) == ncclSuccess ? ""
                                                                                       : last();
  });
  EXPECT_EQ(processes.join(0), 0) << processes.wrong(0);
}

TEST(Refused, SaysSoAndLeavesTheCommunicatorAsItWas) {
  const ncclComm_t comm = alone();
  int number = 0;
  for (const NamedCall &function : eachFunction())
    if (function.isRefused) {
      ++number;
      EXPECT_EQ(function.call(comm), ncclInvalidUsage) << function.name;
      const bool isOfWindow = function.name == "ncclWinGetUserPtr";
      EXPECT_NE(last().find(function.name + ": "), std::string::npos) << last();
      EXPECT_TRUE(isOfWindow || last().find("does not implement") != std::string::npos) << last();
    }
  EXPECT_GT(number, 10);
  void *pointer = nullptr;
  EXPECT_EQ(ncclGetPeerDevicePointer(nullptr, 0, 0, &pointer), ncclInvalidUsage);
  EXPECT_EQ(ncclGetLsaMultimemDevicePointer(nullptr, 0, &pointer), ncclInvalidUsage);
  ncclResult_t state = ncclInternalError;
  EXPECT_EQ(ncclCommGetAsyncError(comm, &state), ncclSuccess);
  EXPECT_EQ(state, ncclSuccess);
  int x = 5;
  EXPECT_EQ(ncclBcast(&x, 1, ncclInt32, 0, comm, nullptr), ncclSuccess) << last();
  EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
}
