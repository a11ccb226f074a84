// What registered collectives hold of their ranks' memory.
#include "plan/testing/example_plans.h"
#include "test/gpu/ranks_on_devices.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <vector>

namespace occl::gpu_test {
namespace {

class Registrations : public RanksOnDevices {
protected:
  occlResult_t submit(uint32_t rank, const Case &what, occlRequest_t &request) {
    RankOnDevice &on = *onDevices[rank];
    cudaSetDevice(static_cast<int>(rank % devices));
    return occlSubmit(comms[rank], what.id, on.input(false), on.output(false), nullptr, nullptr,
                      &request);
  }
};

/// Whether all bytes have the value.
bool holds(RankOnDevice &rank, const char *memory, char value, uint64_t bytes) {
  std::vector<char> copy(bytes);
  cudaMemcpyAsync(copy.data(), memory, bytes, cudaMemcpyDeviceToHost, rank.stream());
  return rank.synchronize().empty() &&
         std::ranges::all_of(copy, [=](char byte) { return byte == value; });
}

struct Piece {
  char *memory;
  uint64_t bytes;
};

/// All of the rank's memory that is free: as large pieces as there are, down to the smallest.
std::vector<Piece> takeAll(occlComm_t comm) {
  std::vector<Piece> pieces;
  void *memory = nullptr;
  for (uint64_t bytes = 64 << 20; bytes >= 128; bytes /= 2)
    while (occlMemAlloc(comm, bytes, &memory) == occlSuccess)
      pieces.push_back({static_cast<char *>(memory), bytes});
  return pieces;
}

uint64_t bytesOf(const std::vector<Piece> &pieces) {
  uint64_t sum = 0;
  for (const Piece &piece : pieces)
    sum += piece.bytes;
  return sum;
}

/// A broadcast along a chain, of twice as many messages as a connection holds. Without the last
/// rank the others come so far that the root has sent everything and is done: its memory must be
/// nobody else's before they are done, too.
TEST_F(Registrations, NobodyStoresIntoMemoryThatHasBecomeAnothers) {
  auto n = static_cast<uint32_t>(comms.size());
  if (n < 3)
    GTEST_SKIP() << "needs three ranks";
  Case what = one(plan::testing::chainBroadcast(n, 4));
  ASSERT_EQ(what.plan.depth, 2u);
  for (uint32_t r = 0; r < n; ++r)
    ASSERT_EQ(registerCase(comms[r], what), occlSuccess) << occlGetLastError();
  std::vector<occlRequest_t> requests(n);
  for (uint32_t r = 0; r < n; ++r) // connectors come with the first one
    ASSERT_EQ(submit(r, what, requests[r]), occlSuccess) << occlGetLastError();
  for (uint32_t r = 0; r < n; ++r)
    ASSERT_EQ(occlWait(comms[r], requests[r]), occlSuccess) << occlGetLastError();
  for (uint32_t r = 0; r + 1 < n; ++r)
    ASSERT_EQ(submit(r, what, requests[r]), occlSuccess) << occlGetLastError();
  ASSERT_EQ(occlWait(comms[0], requests[0]), occlSuccess) << occlGetLastError();
  ASSERT_EQ(occlDeregister(comms[0], what.id), occlSuccess) << occlGetLastError();
  constexpr char kMine = 0x3c;
  std::vector<Piece> pieces = takeAll(comms[0]);
  for (const Piece &mine : pieces)
    cudaMemsetAsync(mine.memory, kMine, mine.bytes, onDevices[0]->stream());
  ASSERT_EQ(onDevices[0]->synchronize(), "");
  ASSERT_EQ(submit(n - 1, what, requests[n - 1]), occlSuccess) << occlGetLastError();
  for (uint32_t r = 1; r < n; ++r)
    ASSERT_EQ(occlWait(comms[r], requests[r]), occlSuccess) << occlGetLastError();
  for (const Piece &mine : pieces)
    ASSERT_TRUE(holds(*onDevices[0], mine.memory, kMine, mine.bytes))
        << mine.bytes << " bytes at " << static_cast<void *>(mine.memory);
  // With the last rank the memory comes back.
  uint64_t before = bytesOf(pieces);
  for (const Piece &mine : pieces)
    ASSERT_EQ(occlMemFree(comms[0], mine.memory), occlSuccess);
  for (uint32_t r = 1; r < n; ++r)
    ASSERT_EQ(occlDeregister(comms[r], what.id), occlSuccess) << occlGetLastError();
  EXPECT_GT(bytesOf(takeAll(comms[0])), before);
  EXPECT_STREQ(occlCommGetLastError(comms[0]), "");
}

TEST_F(Registrations, IdsComeAndGoForEver) {
  auto n = static_cast<uint32_t>(comms.size());
  inThreads([&](uint32_t rank) -> std::string {
    for (uint32_t round = 0; round < 100; ++round) {
      Case what = one(plan::testing::ringAllReduce(n), round % 3);
      what.count = 250'000; // the device memory of these tests would not hold all of them
      occlRequest_t request = 0;
      occlResult_t result = registerCase(comms[rank], what);
      auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
      // Others may not have deregistered the one before.
      while ((result == occlSuccess && (result = submit(rank, what, request)) == occlAgain) &&
             std::chrono::steady_clock::now() < end)
        result = occlSuccess;
      if (result == occlSuccess)
        result = occlWait(comms[rank], request);
      if (result == occlSuccess)
        result = occlDeregister(comms[rank], what.id);
      if (result != occlSuccess)
        return "round " + std::to_string(round) + ": " + occlGetLastError();
    }
    return "";
  });
}

/// Until then nothing is agreed.
TEST_F(Registrations, TheFirstSubmissionSaysWhatDoesNotFit) {
  auto n = static_cast<uint32_t>(comms.size());
  Case what = one(plan::testing::ringAllReduce(n)),
       other = one(plan::testing::ringAllReduce(n + 1));
  occlRequest_t requests[2] = {0, 0};
  ASSERT_EQ(registerCase(comms[0], what), occlSuccess) << occlGetLastError();
  EXPECT_EQ(registerCase(comms[0], what), occlInvalidArgument) << "twice";
  ASSERT_EQ(submit(0, what, requests[0]), occlSuccess) << occlGetLastError();
  ++what.count;
  ASSERT_EQ(registerCase(comms[1], what), occlSuccess) << occlGetLastError();
  EXPECT_EQ(submit(1, what, requests[1]), occlMismatch) << occlGetLastError();
  other.id = 2;
  ASSERT_EQ(registerCase(comms[1], other), occlSuccess) << occlGetLastError();
  EXPECT_EQ(submit(1, other, requests[1]), occlInvalidArgument) << occlGetLastError();
  EXPECT_EQ(occlDeregister(comms[1], 3), occlInvalidArgument);
  EXPECT_EQ(occlCommAbort(comms[1]), occlSuccess);
  EXPECT_EQ(occlWait(comms[0], requests[0]), occlAborted);
}

} // namespace
} // namespace occl::gpu_test
