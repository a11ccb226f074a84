// Communicators on devices that are made of others: divided, and shrunk after failures. Ranks are
// threads.
#include "plan/testing/example_plans.h"
#include "test/gpu/harness/ranks_on_devices.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace occl::gpu_test {
namespace {

class Divided : public RanksOnDevices {};

std::string failed(const char *what) { return std::string(what) + ": " + occlGetLastError(); }

/// Whether collectives work among the ranks of a communicator, which all call it: "" or what is
/// wrong. Buffers stay until the test ends: where ranks share a device, freeing its memory waits
/// for collectives that wait for launches, which in turn wait for the freeing.
std::string works(occlComm_t comm, std::unique_ptr<RankOnDevice> &onDevice) {
  uint32_t rank = 0, numRanks = 0;
  occlCommRank(comm, &rank);
  occlCommSize(comm, &numRanks);
  if (!onDevice)
    onDevice = std::make_unique<RankOnDevice>(comm, rank);
  return runAllReduces(*onDevice, numRanks);
}

TEST_F(Divided, GroupsThatOverlapRunInConflictingOrders) {
  constexpr uint32_t kRanks = 4, kRounds = 30;
  ASSERT_NO_FATAL_FAILURE(start(kRanks));
  std::vector<std::vector<occlComm_t>> groups(kRanks, std::vector<occlComm_t>(3));
  inThreads([&](uint32_t rank) -> std::string { // rows and columns of two by two, and all
    int32_t colours[3] = {static_cast<int32_t>(rank / 2), static_cast<int32_t>(rank % 2), 0};
    for (uint32_t g = 0; g < 3; ++g)
      if (occlCommSplit(comms[rank], colours[g], -static_cast<int32_t>(rank), nullptr,
                        &groups[rank][g]) != occlSuccess)
        return failed("occlCommSplit");
    uint32_t place = 99;
    occlCommRank(groups[rank][2], &place);
    if (place != kRanks - 1 - rank)
      return "rank " + std::to_string(rank) + " is " + std::to_string(place) + ", not as by key";
    return "";
  });
  std::vector<std::vector<cudaStream_t>> streams(kRanks, std::vector<cudaStream_t>(3));
  for (uint32_t r = 0; r < kRanks; ++r)
    for (uint32_t g = 0; g < 3; ++g) {
      cudaSetDevice(static_cast<int>(r % devices));
      cudaStreamCreateWithFlags(&streams[r][g], cudaStreamNonBlocking);
      uint32_t size = 0;
      occlCommSize(groups[r][g], &size);
      ASSERT_EQ(size, g == 2 ? kRanks : 2u);
    }
  inThreads([&](uint32_t rank) -> std::string {
    for (uint32_t round = 0; round < kRounds; ++round)
      for (uint32_t i = 0; i < 3; ++i) {
        uint32_t g = (i + rank + round) % 3;
        char *output = onDevices[rank]->output(false) + 8192 * g;
        const Case what = one(plan::testing::twoShotAllReduce(g == 2 ? kRanks : 2));
        if (std::string wrong = callInStream(groups[rank][g], what, onDevices[rank]->input(false),
                                             output, streams[rank][g]);
            !wrong.empty())
          return wrong;
      }
    for (uint32_t g = 0; g < 3; ++g)
      while (cudaStreamQuery(streams[rank][g]) == cudaErrorNotReady)
        std::this_thread::yield();
    for (occlComm_t group : groups[rank])
      if (*occlCommGetLastError(group) != 0)
        return occlCommGetLastError(group);
    return "";
  });
  for (uint32_t r = 0; r < kRanks; ++r)
    for (uint32_t g = 0; g < 3; ++g) {
      cudaStreamDestroy(streams[r][g]);
      EXPECT_EQ(occlCommDestroy(groups[r][g]), occlSuccess) << occlGetLastError();
    }
}

TEST_F(Divided, AGroupOutlivesWhatItWasMadeOfAndIsDividedAgain) {
  constexpr uint32_t kRanks = 4;
  ASSERT_NO_FATAL_FAILURE(start(kRanks));
  std::vector<occlComm_t> halves(kRanks), alone(kRanks);
  std::vector<std::unique_ptr<RankOnDevice>> onHalves(kRanks), onAlone(kRanks);
  inThreads([&](uint32_t rank) -> std::string {
    if (occlCommSplit(comms[rank], static_cast<int32_t>(rank % 2), 0, nullptr, &halves[rank]) !=
        occlSuccess)
      return failed("occlCommSplit");
    return works(halves[rank], onHalves[rank]);
  });
  onDevices.clear();
  for (occlComm_t &comm : comms)
    EXPECT_EQ(occlCommDestroy(std::exchange(comm, nullptr)), occlSuccess);
  inThreads([&](uint32_t rank) -> std::string {
    if (std::string wrong = works(halves[rank], onHalves[rank]); !wrong.empty())
      return wrong;
    if (occlCommSplit(halves[rank], static_cast<int32_t>(rank), 0, nullptr, &alone[rank]) !=
        occlSuccess)
      return failed("occlCommSplit");
    return works(alone[rank], onAlone[rank]);
  });
  onHalves.clear();
  onAlone.clear();
  for (uint32_t r = 0; r < kRanks; ++r) {
    EXPECT_EQ(occlCommDestroy(alone[r]), occlSuccess);
    EXPECT_EQ(occlCommDestroy(halves[r]), occlSuccess);
  }
}

TEST_F(Divided, AGroupsFailureIsItsOwn) {
  std::vector<occlComm_t> groups(comms.size());
  inThreads([&](uint32_t rank) -> std::string {
    int32_t colour = rank < 2 ? 0 : OCCL_NO_COLOUR;
    if (occlCommSplit(comms[rank], colour, 0, nullptr, &groups[rank]) != occlSuccess)
      return failed("occlCommSplit");
    if ((groups[rank] != nullptr) != (rank < 2))
      return "rank " + std::to_string(rank) + " has a group or none, wrongly";
    if (rank == 0)
      occlCommAbort(groups[rank]);
    return works(comms[rank], onDevices[rank]);
  });
  for (occlComm_t group : groups)
    EXPECT_EQ(occlCommDestroy(group), occlSuccess);
}

TEST_F(Divided, MustBeOnDevicesToo) {
  occlComm_t made = nullptr;
  occlConfig_t config = smallConfig();
  config.deviceKind = occlDeviceHost;
  EXPECT_EQ(occlCommSplit(comms[0], 0, 0, &config, &made), occlInvalidArgument);
  EXPECT_NE(std::string(occlGetLastError()).find("config->deviceKind must be that of"),
            std::string::npos);
  EXPECT_EQ(occlCommShrink(comms[0], nullptr, 0, &config, &made), occlInvalidArgument);
  EXPECT_EQ(made, nullptr);
}

TEST_F(Divided, AConfigurationOfItsOwn) {
  std::vector<occlComm_t> made(comms.size());
  inThreads([&](uint32_t rank) -> std::string {
    occlConfig_t config = smallConfig();
    config.arenaBytes = config.heapBytes = 8 << 20;
    if (occlCommSplit(comms[rank], 0, 0, &config, &made[rank]) != occlSuccess)
      return failed("occlCommSplit");
    void *memory = nullptr;
    if (occlMemAlloc(made[rank], 32 << 20, &memory) != occlAgain)
      return "it has more memory than its configuration says";
    return "";
  });
  for (occlComm_t comm : made)
    EXPECT_EQ(occlCommDestroy(comm), occlSuccess);
}

TEST_F(Divided, AfterAnAbortTheOthersGoOnWithoutWhoDoesNotCome) {
  auto n = static_cast<uint32_t>(comms.size());
  // A collective is parked on rank 0 when it happens.
  ASSERT_EQ(call(0, one(plan::testing::ringAllReduce(n))), "");
  ASSERT_EQ(occlCommAbort(comms[n - 1]), occlSuccess);
  ASSERT_EQ(onDevices[0]->synchronize(), "");
  std::vector<occlComm_t> smaller(n);
  std::vector<std::unique_ptr<RankOnDevice>> onSmaller(n);
  inThreads([&](uint32_t rank) -> std::string {
    if (rank == n - 1)
      return "";
    uint32_t excluded = n - 1, size = 0;
    if (occlCommShrink(comms[rank], &excluded, 1, nullptr, &smaller[rank]) != occlSuccess)
      return failed("occlCommShrink");
    occlCommSize(smaller[rank], &size);
    return size == n - 1 ? works(smaller[rank], onSmaller[rank])
                         : "it has " + std::to_string(size) + " ranks";
  });
  onSmaller.clear();
  for (occlComm_t comm : smaller)
    EXPECT_EQ(occlCommDestroy(comm), occlSuccess);
}

} // namespace
} // namespace occl::gpu_test
