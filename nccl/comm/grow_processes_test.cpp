// ncclCommGrow of ranks that are processes, also where the other NCCL has the communicator, or gets
// the one that it grows to.
#include "nccl/abi/later.h"
#include "nccl/testing/checked_call.h"
#include "nccl/testing/shared_id.h"
#include "runtime/api/testing/processes.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

using occl::communicator::testing::Processes;
using occl::nccl::testing::allReduce;
using occl::nccl::testing::SharedId;
using occl::nccl::testing::where;

namespace {

ncclComm_t growing = nullptr; // of this process

ncclResult_t idOfGrowing(ncclUniqueId *id) { return ncclCommGetUniqueId(growing, id); }

/// Ranks 0 and 1, of which the first makes the id, and a new one; each is prepared, and checked.
struct Job {
  const SharedId first, second;
  void (*prepare)(int rank) = [](int) {};
  std::string (*check)() = [] { return std::string(); };

  std::string body(int rank) const {
    prepare(rank);
    const bool isNew = rank == 2;
    if (!isNew && ncclCommInitRank(&growing, 2, first.get(rank), rank) != ncclSuccess)
      return where("ncclCommInitRank");
    std::string wrong = isNew ? "" : allReduce(growing, rank, 2);
    if (!wrong.empty())
      return wrong;
    const ncclUniqueId id = rank == 1 ? ncclUniqueId{} : second.get(rank, idOfGrowing);
    ncclComm_t comm = nullptr;
    if (ncclCommGrow(growing, 3, rank == 1 ? nullptr : &id, isNew ? 2 : -1, &comm, nullptr) !=
        ncclSuccess)
      return where("ncclCommGrow");
    wrong = allReduce(comm, rank, 3);
    if (wrong.empty())
      wrong = check();
    first.leaveTogether(3);
    ncclCommDestroy(growing);
    ncclCommDestroy(comm);
    return wrong;
  }
  void run() const {
    Processes processes(3, [this](uint32_t rank) { return body(static_cast<int>(rank)); });
    for (uint32_t r = 0; r < 3; ++r)
      EXPECT_EQ(processes.join(r), 0) << "rank " << r << ": " << processes.wrong(r);
  }
};

void setUp(const char *machine, const char *fallback) {
  setenv("NCCL_HOSTID", machine, 1);
  setenv("OCCL_NCCL_FALLBACK", fallback, 1);
  setenv("OCCL_NCCL_FALLBACK_LIBRARY", "nccl/testing/other_nccl.so", 1);
  setenv("OCCL_NCCL_FALLBACK_SECONDS", "20", 1);
  setenv("OTHER_NCCL_LOG", (::testing::TempDir() + "grow_" + std::to_string(getpid())).c_str(), 1);
}

std::string calls() {
  std::ifstream file(std::getenv("OTHER_NCCL_LOG"));
  return std::string(std::istreambuf_iterator<char>(file), {});
}

} // namespace

TEST(GrowProcesses, KeepRanksAndAddOne) { Job().run(); }

TEST(GrowProcesses, OnAnotherMachineGoToAnotherNcclTogether) {
  Job job;
  job.prepare = [](int rank) { setUp(rank == 2 ? "there" : "here", "1"); };
  // The communicator that grows is OCCL's, so the other library makes one of all.
  job.check = [] {
    return calls() == "ncclGetUniqueId\nncclCommInitRankConfig\nncclAllReduce\n" ||
                   calls() == "ncclCommInitRankConfig\nncclAllReduce\n"
               ? ""
               : calls();
  };
  job.run();
}

TEST(GrowProcesses, OfTheOtherNcclGrowThere) {
  Job job;
  job.prepare = [](int) { setUp("here", "all"); };
  job.check = [] { return calls().ends_with("ncclCommGrow\nncclAllReduce\n") ? "" : calls(); };
  job.run();
}

TEST(GrowProcesses, WithoutAnotherNcclAreOccls) {
  const SharedId first, second;
  Processes processes(2, [&](uint32_t r) -> std::string {
    setenv("NCCL_HOSTID", r == 0 ? "here" : "there", 1);
    setenv("OCCL_NCCL_FALLBACK", "0", 1);
    if (r == 0 && ncclCommInitAll(&growing, 1, nullptr) != ncclSuccess)
      return where("ncclCommInitAll");
    const ncclUniqueId id = second.get(static_cast<int>(r), idOfGrowing);
    ncclComm_t comm = nullptr;
    if (ncclCommGrow(growing, 2, &id, r == 0 ? -1 : 1, &comm, nullptr) != ncclSuccess)
      return where("ncclCommGrow");
    const std::string wrong = allReduce(comm, static_cast<int>(r), 2);
    first.leaveTogether(2);
    return wrong;
  });
  for (uint32_t r = 0; r < 2; ++r)
    EXPECT_EQ(processes.join(r), 0) << processes.wrong(r);
}

TEST(GrowProcesses, MayAllMakeTheId) {
  const SharedId first, second, third;
  Processes processes(4, [&](uint32_t r) -> std::string {
    const int rank = static_cast<int>(r);
    if (rank < 2 && ncclCommInitRank(&growing, 2, first.get(rank), rank) != ncclSuccess)
      return where("ncclCommInitRank");
    // Each of the two gives it to another new rank.
    const SharedId &from = rank % 2 == 0 ? second : third;
    const ncclUniqueId id = from.get(rank / 2, idOfGrowing);
    ncclComm_t comm = nullptr;
    if (ncclCommGrow(growing, 4, &id, rank < 2 ? -1 : rank, &comm, nullptr) != ncclSuccess)
      return where("ncclCommGrow");
    const std::string wrong = allReduce(comm, rank, 4);
    first.leaveTogether(4);
    return wrong;
  });
  for (uint32_t r = 0; r < 4; ++r)
    EXPECT_EQ(processes.join(r), 0) << processes.wrong(r);
}

TEST(GrowProcesses, HearIfTheProcessThatMadeTheIdEnds) {
  const SharedId id;
  Processes processes(2, [&](uint32_t r) -> std::string {
    if (r == 0 && ncclCommInitAll(&growing, 1, nullptr) != ncclSuccess)
      return where("ncclCommInitAll");
    const ncclUniqueId known = id.get(static_cast<int>(r), idOfGrowing);
    if (r == 0) {
      usleep(200000);
      raise(SIGKILL);
    }
    ncclComm_t comm = nullptr;
    if (ncclCommGrow(nullptr, 3, &known, 1, &comm, nullptr) != ncclSuccess)
      return where("ncclCommGrow");
    float value = 1;
    const ncclResult_t result =
        ncclAllReduce(&value, &value, 1, ncclFloat32, ncclSum, comm, nullptr);
    const std::string text = ncclGetLastError(nullptr);
    return result == ncclRemoteError && text.find("made the id") != std::string::npos ? "" : text;
  });
  EXPECT_EQ(processes.join(0), -1);
  EXPECT_EQ(processes.join(1), 0) << processes.wrong(1);
}

TEST(GrowProcesses, ThatWereForkedHaveNoneOfTheParents) {
  Processes processes(1, [](uint32_t) -> std::string {
    ncclUniqueId id;
    if (ncclCommInitAll(&growing, 1, nullptr) != ncclSuccess ||
        ncclCommGetUniqueId(growing, &id) != ncclSuccess)
      return where("the parent");
    Processes child(1, [&](uint32_t) -> std::string {
      ncclComm_t comm = nullptr;
      return ncclCommGrow(growing, 2, nullptr, -1, &comm, nullptr) == ncclInvalidUsage && !comm
                 ? ""
                 : "the child grows its parent's communicator";
    });
    return child.join(0) == 0 ? "" : child.wrong(0);
  });
  EXPECT_EQ(processes.join(0), 0) << processes.wrong(0);
}
