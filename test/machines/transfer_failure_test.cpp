// What ranks of several islands find out when a transfer between them cannot end.
#include "runtime/api/occl_collectives.h"
#include "runtime/api/occl_transfer.h"
#include "runtime/api/testing/harness.h"
#include "runtime/api/testing/processes.h"
#include "runtime/api/testing/steps.h"
#include "runtime/api/testing/transfer_graph.h"
#include "test/machines/islands.h"
#include "test/machines/shared_times.h"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

namespace occl::communicator::testing {
namespace {

using namespace std::chrono_literals;

const std::vector<uint32_t> kHosts = {0, 0, 1, 1};
constexpr uint32_t kRanks = 4;
constexpr uint64_t kLarge = 1 << 20;

std::string contains(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos ? "" : "expected '" + part + "' in: " + text;
}

/// Whether a call has this result, with this text.
std::string expectResult(occlResult_t result, occlResult_t expected, const std::string &part) {
  return result == expected ? contains(occlGetLastError(), part)
                            : "result " + std::to_string(result) + ", expected " +
                                  std::to_string(expected) + " with '" + part + "'";
}

/// Rank 3 is killed while ranks of both islands send to it, receive from it, and wait for another
/// one.
TEST(TransferFailure, KilledRankIsNamedByAll) {
  constexpr uint32_t kVictim = 3;
  const std::string address = newAddress();
  SharedTimes times; // of the victim: its end; of the others: their call's
  Processes processes(kRanks, [&](uint32_t rank) -> std::string {
    occlComm_t comm = nullptr;
    if (std::string wrong = joinOn(kHosts[rank], comm, kRanks, rank, address); !wrong.empty())
      return wrong;
    std::vector<char> data(kLarge);
    if (rank == kVictim) {
      std::thread([&] {
        std::this_thread::sleep_for(300ms);
        times.note(kVictim);
        raise(SIGKILL);
      }).detach();
      while (occlRecv(data.data(), kLarge, occlUint8, 0, comm, nullptr) == occlSuccess) {
      }
    } else if (rank == 0) {
      while (occlSend(data.data(), kLarge, occlUint8, kVictim, comm, nullptr) == occlSuccess) {
      }
    } else {
      const uint32_t from = rank == 1 ? kVictim : 1;
      if (occlRecv(data.data(), kLarge, occlUint8, from, comm, nullptr) == occlSuccess)
        return "it has received what nobody sends";
    }
    times.note(rank);
    const std::string text = occlCommGetLastError(comm);
    occlCommDestroy(comm);
    return contains(text, "process of rank 3 is gone");
  });
  for (uint32_t r = 0; r < kRanks; ++r) {
    EXPECT_EQ(processes.join(r), r == kVictim ? -1 : 0)
        << "rank " << r << ": " << processes.wrong(r);
    EXPECT_LT(times.between(kVictim, r), kUntilNamed) << "rank " << r;
  }
}

/// In the middle of whatever it is, to both kinds of ranks.
TEST(TransferFailure, AbortReachesOtherIslands) {
  const uint64_t seed = printedSeed();
  for (uint32_t i = 0; i < 6; ++i)
    onIslands(kHosts, [&](occlComm_t comm, uint32_t rank) -> std::string {
      std::thread aborter;
      if (rank == i % kRanks)
        aborter = std::thread([&] {
          std::this_thread::sleep_for(20ms * i);
          occlCommAbort(comm);
        });
      std::string wrong;
      for (uint64_t round = 0; wrong.empty(); ++round)
        wrong = TransferGraph(kRanks, 60, 2000000, seed + round).run(comm, rank);
      while (occlGroupEnd() == occlSuccess)
        ; // of a call that was refused in the middle of its group
      if (aborter.joinable())
        aborter.join();
      return contains(wrong, "occlCommAbort was called on rank " + std::to_string(i % kRanks));
    });
}

TEST(TransferFailure, DeadlinesNameWhatIsWaitedFor) {
  onIslands(
      {0, 1},
      [](occlComm_t comm, uint32_t rank) -> std::string {
        int32_t number = 0;
        if (rank == 1)
          std::this_thread::sleep_for(100ms); // the other's deadline is the first
        const occlResult_t result = occlRecv(&number, 1, occlInt32, 1 - rank, comm, nullptr);
        return expectResult(result, occlTimeout,
                            "transfer 0, 1 elements of int32, waits for data from rank 1");
      },
      withTimeout(500));
  onIslands(
      {0, 1},
      [](occlComm_t comm, uint32_t rank) -> std::string {
        std::vector<char> data(kLarge);
        if (rank == 1) {
          std::this_thread::sleep_for(1s);
          return expectResult(occlRecv(data.data(), kLarge, occlUint8, 0, comm, nullptr),
                              occlTimeout, "did not end on rank 0");
        }
        return expectResult(occlSend(data.data(), kLarge, occlUint8, 1, comm, nullptr), occlTimeout,
                            "waits for rank 1 to read what it was sent");
      },
      withTimeout(500));
}

TEST(TransferFailure, MismatchesNameBothSidesOnBoth) {
  for (const uint64_t sent : {uint64_t{100}, uint64_t{0}, kLarge})
    onIslands({0, 1}, [&](occlComm_t comm, uint32_t rank) -> std::string {
      std::vector<char> data(kLarge + 1);
      occlResult_t result = rank == 0
                                ? occlSend(data.data(), sent, occlUint8, 1, comm, nullptr)
                                : occlRecv(data.data(), sent + 1, occlUint8, 0, comm, nullptr);
      while (rank == 0 && result == occlSuccess) { // it was eager: the next call says so
        std::this_thread::sleep_for(1ms);
        result = occlSend(nullptr, 0, occlUint8, 0, comm, nullptr);
      }
      return expectResult(result, occlMismatch,
                          "rank 0 sends " + std::to_string(sent) + " elements of uint8, rank 1 " +
                              "receives " + std::to_string(sent + 1));
    });
}

/// Large to the one, small to the other: the types alone disagree.
TEST(TransferFailure, EqualCountsOfALargeAndASmallTypeAreAMismatch) {
  onIslands({0, 1}, [](occlComm_t comm, uint32_t rank) -> std::string {
    std::vector<double> data(10000);
    occlResult_t result = rank == 0
                              ? occlSend(data.data(), data.size(), occlFloat64, 1, comm, nullptr)
                              : occlRecv(data.data(), data.size(), occlUint8, 0, comm, nullptr);
    while (rank == 0 && result == occlSuccess) { // it was in the ring: the next call says so
      std::this_thread::sleep_for(1ms);
      result = occlSend(nullptr, 0, occlUint8, 0, comm, nullptr);
    }
    return expectResult(result, occlMismatch,
                        "rank 0 sends 10000 elements of float64, rank 1 receives 10000 of uint8");
  });
}

/// Of ranks on both islands, asked of one.
TEST(TransferFailure, TheReportNamesWaitsOfOtherMachines) {
  onIslands(kHosts, [](occlComm_t comm, uint32_t rank) -> std::string {
    int32_t number = 0;
    if (rank != 0) {
      occlRecv(&number, 1, occlInt32, (rank + 1) % kRanks, comm, nullptr);
      return contains(occlCommGetLastError(comm), "occlCommAbort was called on rank 0");
    }
    std::string wrong, text;
    const auto end = std::chrono::steady_clock::now() + 20s;
    do {
      text = reportOf(comm);
      wrong = contains(text, "rank 0 waits for nobody");
      for (uint32_t r = 1; r < kRanks && wrong.empty(); ++r) {
        const std::string peer = std::to_string((r + 1) % kRanks), self = std::to_string(r);
        wrong = contains(text, "rank " + self + " waits for rank " + peer + " (data)") +
                contains(text, "in transfer 0 from rank " + peer + " to rank " + self) +
                contains(text, " ms");
      }
    } while (!wrong.empty() && std::chrono::steady_clock::now() < end);
    occlCommAbort(comm);
    return wrong;
  });
}

/// Three that are eager fill the ring; what a rank that is stopped has not read waits in it.
TEST(TransferFailure, SmallSendsWaitForRoom) {
  onIslands(
      {0, 1},
      [](occlComm_t comm, uint32_t rank) -> std::string {
        std::vector<char> data(OCCL_EAGER_BYTES);
        if (rank == 1) {
          std::this_thread::sleep_for(1500ms);
          return occlRecv(data.data(), 1, occlUint8, 0, comm, nullptr) == occlTimeout ? ""
                                                                                      : "received";
        }
        uint32_t sent = 0;
        while (occlSend(data.data(), data.size(), occlUint8, 1, comm, nullptr) == occlSuccess)
          ++sent;
        if (sent != 3)
          return std::to_string(sent) + " were sent";
        return contains(occlGetLastError(), "waits for rank 1 to read what it was sent");
      },
      withTimeout(500));
}

/// Rings, sockets and buffers fill up; then all goes on.
TEST(TransferFailure, StoppedProcessIsNoFailure) {
  const uint64_t seed = printedSeed();
  withARankThatStops(kHosts, 2, 3s, 20, [&](occlComm_t comm, uint32_t rank, uint32_t i) {
    return TransferGraph(kRanks, 60, 2000000, seed + i).run(comm, rank);
  });
}

/// Right after its last bytes, of which the other has read none. The next receive misses it.
TEST(TransferFailure, ARankThatHasLeftHasSent) {
  for (uint32_t i = 0; i < 5; ++i)
    onIslands({0, 1}, [](occlComm_t comm, uint32_t rank) -> std::string {
      std::vector<char> data(150000, rank == 0 ? 'x' : ' ');
      if (rank == 0)
        return occlSend(data.data(), data.size(), occlUint8, 1, comm, nullptr) == occlSuccess
                   ? ""
                   : lastError("occlSend");
      std::this_thread::sleep_for(200ms);
      if (occlRecv(data.data(), data.size(), occlUint8, 0, comm, nullptr) != occlSuccess)
        return lastError("occlRecv of what was sent");
      if (data != std::vector<char>(data.size(), 'x'))
        return "wrong data";
      return expectResult(occlRecv(data.data(), 1, occlUint8, 0, comm, nullptr), occlPeerFailed,
                          "rank 0 has destroyed its communicator");
    });
}

/// It is done with what it has received, and says so before it goes.
TEST(TransferFailure, ARankThatHasLeftHasReceived) {
  for (uint32_t i = 0; i < 5; ++i)
    onIslands({0, 1}, [](occlComm_t comm, uint32_t rank) -> std::string {
      std::vector<char> data(4 * kLarge);
      const occlResult_t result =
          rank == 0 ? occlSend(data.data(), data.size(), occlUint8, 1, comm, nullptr)
                    : occlRecv(data.data(), data.size(), occlUint8, 0, comm, nullptr);
      return result == occlSuccess ? "" : lastError("a transfer");
    });
}

} // namespace
} // namespace occl::communicator::testing
