// Transfers between ranks of several islands, and collectives with counts by rank.
#include "runtime/api/occl_transfer.h"
#include "runtime/api/testing/harness.h"
#include "runtime/api/testing/processes.h"
#include "runtime/api/testing/steps.h"
#include "runtime/api/testing/transfer_graph.h"
#include "runtime/api/testing/v_collectives.h"
#include "test/machines/islands.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

namespace occl::communicator::testing {
namespace {

using namespace std::chrono_literals;

uint32_t sizeOf(const std::vector<uint32_t> &hosts) { return static_cast<uint32_t>(hosts.size()); }

class TransferIslands : public ::testing::TestWithParam<std::vector<uint32_t>> {};

TEST_P(TransferIslands, AnyOrderInGroups) {
  const uint64_t seed = printedSeed();
  onIslands(GetParam(), [&](occlComm_t comm, uint32_t rank) {
    std::string wrong;
    for (uint64_t round = 0; round < 20 / kSlowness && wrong.empty(); ++round)
      wrong = TransferGraph(sizeOf(GetParam()), 200, 300000, seed + round).run(comm, rank);
    return wrong;
  });
}

TEST_P(TransferIslands, CountsByRank) {
  const uint64_t seed = printedSeed();
  onIslands(GetParam(), [&](occlComm_t comm, uint32_t rank) {
    return runVCollectives(comm, sizeOf(GetParam()), rank, seed);
  });
}

INSTANTIATE_TEST_SUITE_P(Shapes, TransferIslands,
                         ::testing::Values(std::vector<uint32_t>{0, 1},
                                           std::vector<uint32_t>{0, 0, 1, 1},
                                           std::vector<uint32_t>{0, 1, 1, 0, 2},
                                           std::vector<uint32_t>{0, 1, 0, 1, 0, 1, 0, 1}));

/// Of up to 64 MiB, to ranks of the own island and of the other.
TEST(TransferIslands, LargeOnes) {
  constexpr uint32_t kRanks = 3;
  const uint64_t seed = printedSeed();
  const uint64_t number = numberFrom("OCCL_TEST_TRANSFERS", 50 / kSlowness);
  onIslands({0, 0, 1}, [&](occlComm_t comm, uint32_t rank) {
    return TransferGraph(kRanks, number, 64 << 20, seed).run(comm, rank);
  });
}

/// Far more than a ring has room for, and nothing.
TEST(TransferIslands, LargerOnes) {
  onIslands({0, 1}, [](occlComm_t comm, uint32_t rank) -> std::string {
    std::vector<uint32_t> data((70 << 20) / sizeof(uint32_t) + 1);
    for (size_t i = 0; rank == 0 && i < data.size(); ++i)
      data[i] = static_cast<uint32_t>(i * 2654435761u);
    for (uint64_t count : {uint64_t{0}, uint64_t{data.size()}, uint64_t{0}})
      if ((rank == 0 ? occlSend(data.data(), count, occlUint32, 1, comm, nullptr)
                     : occlRecv(data.data(), count, occlUint32, 0, comm, nullptr)) != occlSuccess)
        return lastError("a transfer");
    for (size_t i = 0; i < data.size(); ++i)
      if (data[i] != static_cast<uint32_t>(i * 2654435761u))
        return "element " + std::to_string(i) + " is wrong";
    return "";
  });
}

TEST(TransferIslands, TenThousandInAGroup) {
  constexpr uint32_t kRanks = 2;
  const uint64_t seed = printedSeed();
  onIslands({0, 1}, [&](occlComm_t comm, uint32_t rank) -> std::string {
    const TransferGraph graph(kRanks, 12000, 2000, seed);
    return graph.countOf(rank) < 10000 ? "too few" : graph.run(comm, rank);
  });
}

/// From and to memory that the ranks of an island map, and others do not.
TEST(TransferIslands, BetweenSharedBuffers) {
  constexpr uint32_t kRanks = 3;
  const uint64_t seed = printedSeed();
  onIslands({0, 1, 1}, [&](occlComm_t comm, uint32_t rank) -> std::string {
    return TransferGraph(kRanks, 100, 3000000, seed).runInHeap(comm, rank);
  });
}

TEST(TransferIslands, BesideCollectives) {
  constexpr uint32_t kRanks = 4;
  const uint64_t seed = printedSeed();
  onIslands({0, 0, 1, 1}, [&](occlComm_t comm, uint32_t rank) {
    std::string wrong, wrongToo;
    std::thread other([&] {
      for (uint32_t i = 0; i < 20 / kSlowness && wrongToo.empty(); ++i)
        wrongToo = runCollectives(comm, 1 + i * 4099 % 70000);
    });
    for (uint64_t round = 0; round < 20 / kSlowness && wrong.empty(); ++round)
      wrong = TransferGraph(kRanks, 60, 300000, seed + round).run(comm, rank);
    other.join();
    return wrong + wrongToo;
  });
}

/// A group that ends by a callback, with transfers to all ranks.
TEST(TransferIslands, GroupsThatEndLater) {
  onIslands({0, 0, 1, 1}, [](occlComm_t comm, uint32_t rank) -> std::string {
    constexpr uint32_t kRanks = 4;
    std::vector<int32_t> mine(50000, static_cast<int32_t>(rank));
    std::array<std::vector<int32_t>, kRanks> got;
    occlRequest_t request = 0;
    occlGroupStart();
    for (uint32_t r = 0; r < kRanks; ++r) {
      got[r].resize(mine.size(), -1);
      occlRecv(got[r].data(), mine.size(), occlInt32, r, comm, nullptr);
      occlSend(mine.data(), mine.size(), occlInt32, r, comm, nullptr);
    }
    if (occlGroupEndAsync(comm, 0, nullptr, nullptr, &request) != occlSuccess ||
        occlWait(comm, request) != occlSuccess)
      return lastError("the group");
    for (uint32_t r = 0; r < kRanks; ++r)
      if (got[r] != std::vector<int32_t>(mine.size(), static_cast<int32_t>(r)))
        return "wrong data of rank " + std::to_string(r);
    return "";
  });
}

std::string transferBytes(bool isSend, uint64_t bytes, uint32_t peer, occlComm_t comm) {
  std::vector<char> data(bytes, isSend ? 'x' : ' ');
  if ((isSend ? occlSend(data.data(), bytes, occlUint8, peer, comm, nullptr)
              : occlRecv(data.data(), bytes, occlUint8, peer, comm, nullptr)) != occlSuccess)
    return lastError(isSend ? "occlSend" : "occlRecv");
  return data == std::vector<char>(bytes, 'x') ? "" : "wrong data";
}

/// More than is eager, less than the ring has: it ends without its receiver where that could not
/// read it, and waits where it can.
constexpr uint64_t kFitsIntoTheRing = 150000;

TEST(TransferIslands, OnlyRanksOfAnIslandReadEachOther) {
  onIslands(
      {0, 0, 1},
      [](occlComm_t comm, uint32_t rank) -> std::string {
        if (rank != 0) {
          std::this_thread::sleep_for(2s); // receives nothing
          return "";
        }
        if (std::string wrong = transferBytes(true, kFitsIntoTheRing, 2, comm); !wrong.empty())
          return wrong;
        const std::string text = transferBytes(true, kFitsIntoTheRing, 1, comm);
        return text.find("waits for rank 1 to read what it was sent") != std::string::npos
                   ? ""
                   : "expected to wait for the receiver: " + text;
      },
      withTimeout(1000));
}

/// Threads that meet as if they were on two machines: addresses of one are good on the other, and
/// are not used.
TEST(TransferIslands, TwoInOneProcess) {
  const std::string address = newAddress();
  const uint64_t seed = printedSeed();
  Processes processes(1, [&](uint32_t) -> std::string {
    std::array<std::string, 2> wrong;
    std::atomic<bool> isSent{false};
    const auto run = [&](uint32_t rank) -> std::string {
      occlComm_t comm = nullptr;
      if (std::string failed = joinOn(rank, comm, 2, rank, address); !failed.empty())
        return failed;
      while (rank == 1 && !isSent)
        std::this_thread::sleep_for(1ms);
      std::string said = transferBytes(rank == 0, kFitsIntoTheRing, 1 - rank, comm);
      isSent = true;
      for (uint64_t round = 0; round < 20 / kSlowness && said.empty(); ++round)
        said = TransferGraph(2, 100, 300000, seed + round).run(comm, rank);
      occlCommDestroy(comm);
      return said;
    };
    std::thread first([&] { wrong[0] = run(0); });
    std::this_thread::sleep_for(1s); // it has asked the environment for its host
    wrong[1] = run(1);
    first.join();
    return wrong[0] + wrong[1];
  });
  EXPECT_EQ(processes.join(0), 0) << processes.wrong(0);
}

} // namespace
} // namespace occl::communicator::testing
