// Communicators on devices that are made of others, ranks being processes. Skipped where there is
// no device.
#include "plan/testing/example_plans.h"
#include "test/gpu/harness/processes_on_devices.h"

#include <gtest/gtest.h>

#include <csignal>
#include <string>

namespace occl::gpu_test {
namespace {

constexpr uint32_t kRanks = 3;

std::string failed(const char *what) { return std::string(what) + ": " + occlGetLastError(); }

/// Whether collectives work among all ranks of a communicator of this size and place: "" or what is
/// wrong.
std::string works(occlComm_t comm, uint32_t numRanks, uint32_t rank) {
  uint32_t gotRank = 99, gotSize = 99;
  occlCommRank(comm, &gotRank);
  occlCommSize(comm, &gotSize);
  if (gotRank != rank || gotSize != numRanks)
    return "got rank " + std::to_string(gotRank) + " of " + std::to_string(gotSize);
  RankOnDevice onDevice(comm, rank);
  return runAllReduces(onDevice, numRanks);
}

TEST(DividedProcesses, GroupsThatOverlapWorkAndOutliveEachOther) {
  if (!hasDevice())
    GTEST_SKIP() << "no CUDA device";
  // Each rank is in two groups of two: with the next one and with the one before.
  auto body = [](occlComm_t comm, uint32_t rank) -> std::string {
    std::string wrong = works(comm, kRanks, rank);
    for (uint32_t first = 0; first < kRanks && wrong.empty(); ++first) {
      bool isMember = rank == first || rank == (first + 1) % kRanks;
      occlComm_t group = nullptr, again = nullptr;
      if (occlCommSplit(comm, isMember ? 0 : OCCL_NO_COLOUR, rank == first ? 0 : 1, nullptr,
                        &group) != occlSuccess)
        return failed("occlCommSplit");
      if (!isMember)
        continue;
      wrong = works(group, 2, rank == first ? 0 : 1);
      if (wrong.empty() && occlCommSplit(group, 0, 0, nullptr, &again) != occlSuccess)
        wrong = failed("occlCommSplit of a group");
      occlCommDestroy(group);
      if (wrong.empty())
        wrong = works(again, 2, rank == first ? 0 : 1);
      occlCommDestroy(again);
    }
    return wrong.empty() ? works(comm, kRanks, rank) : wrong;
  };
  Processes processes(kRanks, joined(kRanks, jobName("divided"), body));
  expectAllRight(processes, kRanks);
}

TEST(DividedProcesses, AfterAKillTheOthersGoOn) {
  if (!hasDevice() || areOnMachines())
    GTEST_SKIP() << "no CUDA device, or ranks of several machines, which cannot shrink yet";
  auto body = [](occlComm_t comm, uint32_t rank) -> std::string {
    RankOnDevice onDevice(comm, rank);
    Case what;
    what.plan = plan::testing::twoShotAllReduce(kRanks);
    what.count = 1000;
    if (rank == 1)
      raise(SIGKILL);
    // May be refused: who is faster sees that rank 1 is gone.
    callCase(comm, what, onDevice.input(false), onDevice.output(false), onDevice.stream());
    if (std::string wrong = onDevice.synchronize(); !wrong.empty())
      return wrong;
    occlComm_t smaller = nullptr;
    if (occlCommShrink(comm, nullptr, 0, nullptr, &smaller) != occlSuccess)
      return failed("occlCommShrink");
    std::string wrong = works(smaller, 2, rank == 0 ? 0 : 1);
    occlCommDestroy(smaller);
    return wrong;
  };
  Processes processes(kRanks, joined(kRanks, jobName("divided-kill"), body));
  for (uint32_t r = 0; r < kRanks; ++r)
    EXPECT_EQ(processes.join(r), r == 1 ? -1 : 0) << "rank " << r << ": " << processes.wrong(r);
}

} // namespace
} // namespace occl::gpu_test
