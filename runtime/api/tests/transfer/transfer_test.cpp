// Sends, receives and groups of ranks that are threads.
#include "plan/testing/example_plans.h"
#include "runtime/api/occl_collectives.h"
#include "runtime/api/occl_transfer.h"
#include "runtime/api/testing/harness.h"
#include "runtime/api/testing/steps.h"
#include "runtime/api/testing/transfer_graph.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

namespace occl::communicator::testing {
namespace {

using namespace std::chrono_literals;

/// Numbers that no other rank, round and size has.
std::vector<int32_t> numbers(uint64_t count, int32_t first) {
  std::vector<int32_t> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

occlResult_t send(const std::vector<int32_t> &values, uint32_t peer, occlComm_t comm) {
  return occlSend(values.data(), values.size(), occlInt32, peer, comm, nullptr);
}
occlResult_t receive(std::vector<int32_t> &values, uint32_t peer, occlComm_t comm) {
  return occlRecv(values.data(), values.size(), occlInt32, peer, comm, nullptr);
}

/// Below, at and above the limit of eager sends, and more than a ring holds.
constexpr uint64_t kCounts[] = {0, 1, 1000, OCCL_EAGER_BYTES / 4, OCCL_EAGER_BYTES / 4 + 1, 200000};

TEST(Transfer, OneAfterTheOther) {
  Ranks ranks(2);
  ranks.run([&](uint32_t r) {
    for (int32_t round = 0; round < 20; ++round)
      for (uint64_t count : kCounts) {
        const auto expected = numbers(count, round);
        if (r == 0) {
          ASSERT_EQ(send(expected, 1, ranks[0]), occlSuccess) << occlGetLastError();
          continue;
        }
        std::vector<int32_t> got(count, -1);
        ASSERT_EQ(receive(got, 0, ranks[1]), occlSuccess) << occlGetLastError();
        ASSERT_EQ(got, expected) << count;
      }
  });
}

/// After a send its buffer may be used again at once.
TEST(Transfer, TheBufferIsTheCallersAgain) {
  Ranks ranks(2);
  ranks.run([&](uint32_t r) {
    for (uint64_t count : kCounts) {
      auto values = numbers(count, 0);
      for (int32_t round = 0; round < 10; ++round) {
        if (r == 0) {
          std::iota(values.begin(), values.end(), round);
          ASSERT_EQ(send(values, 1, ranks[0]), occlSuccess);
          std::ranges::fill(values, -1);
          continue;
        }
        ASSERT_EQ(receive(values, 0, ranks[1]), occlSuccess);
        ASSERT_EQ(values, numbers(count, round));
      }
    }
  });
}

TEST(Transfer, ASmallSendEndsWithoutItsReceiver) {
  Ranks ranks(2, withTimeout(20000));
  constexpr uint64_t kEach = OCCL_EAGER_BYTES / sizeof(int32_t);
  std::vector<int32_t> got(kEach);
  // Nobody receives yet: 3 of 64 KiB, and 100 of nothing.
  for (int32_t i = 0; i < 3; ++i)
    ASSERT_EQ(send(numbers(kEach, i), 1, ranks[0]), occlSuccess) << occlGetLastError();
  for (int32_t i = 0; i < 100; ++i)
    ASSERT_EQ(occlSend(nullptr, 0, occlUint8, 1, ranks[0], nullptr), occlSuccess);
  for (int32_t i = 0; i < 3; ++i) {
    ASSERT_EQ(receive(got, 0, ranks[1]), occlSuccess);
    EXPECT_EQ(got, numbers(kEach, i));
  }
  for (int32_t i = 0; i < 100; ++i)
    ASSERT_EQ(occlRecv(nullptr, 0, occlUint8, 0, ranks[1], nullptr), occlSuccess);
}

TEST(Transfer, ToOneself) {
  Ranks ranks(1);
  for (uint64_t count : kCounts) {
    std::vector<int32_t> got(count, -1), sent = numbers(count, 7);
    ASSERT_EQ(occlGroupStart(), occlSuccess);
    ASSERT_EQ(receive(got, 0, ranks[0]), occlSuccess);
    ASSERT_EQ(send(sent, 0, ranks[0]), occlSuccess);
    ASSERT_EQ(occlGroupEnd(), occlSuccess) << occlGetLastError();
    EXPECT_EQ(got, sent);
    // To where it lies.
    ASSERT_EQ(occlGroupStart(), occlSuccess);
    ASSERT_EQ(send(got, 0, ranks[0]), occlSuccess);
    ASSERT_EQ(receive(got, 0, ranks[0]), occlSuccess);
    ASSERT_EQ(occlGroupEnd(), occlSuccess);
    EXPECT_EQ(got, sent);
  }
  // Eager, without a group; larger, by another thread.
  std::vector<int32_t> got(1000), sent = numbers(1000, 1);
  ASSERT_EQ(send(sent, 0, ranks[0]), occlSuccess);
  ASSERT_EQ(receive(got, 0, ranks[0]), occlSuccess);
  EXPECT_EQ(got, sent);
  got.resize(100000);
  sent = numbers(100000, 2);
  std::thread other([&] { EXPECT_EQ(receive(got, 0, ranks[0]), occlSuccess); });
  EXPECT_EQ(send(sent, 0, ranks[0]), occlSuccess);
  other.join();
  EXPECT_EQ(got, sent);
}

TEST(Transfer, AnyOrderInAGroup) {
  constexpr uint32_t kRanks = 5;
  const uint64_t seed = printedSeed();
  Ranks ranks(kRanks);
  ranks.run([&](uint32_t r) {
    for (uint64_t round = 0; round < 20 / std::min(kSlowness, 4u); ++round)
      ASSERT_EQ(TransferGraph(kRanks, 200, 300000, seed + round).run(ranks[r], r), "");
  });
}

/// All send first, each to all others, more than fits into a ring.
TEST(Transfer, AllSendBeforeTheyReceive) {
  constexpr uint32_t kRanks = 4;
  constexpr uint64_t kCount = 300000;
  Ranks ranks(kRanks);
  ranks.run([&](uint32_t r) {
    const auto mine = numbers(kCount, static_cast<int32_t>(r));
    std::vector<std::vector<int32_t>> got(kRanks, std::vector<int32_t>(kCount));
    ASSERT_EQ(occlGroupStart(), occlSuccess);
    for (uint32_t to = 0; to < kRanks; ++to)
      ASSERT_EQ(send(mine, to, ranks[r]), occlSuccess);
    for (uint32_t from = kRanks; from-- > 0;)
      ASSERT_EQ(receive(got[from], from, ranks[r]), occlSuccess);
    ASSERT_EQ(occlGroupEnd(), occlSuccess) << occlGetLastError();
    for (uint32_t from = 0; from < kRanks; ++from)
      EXPECT_EQ(got[from], numbers(kCount, static_cast<int32_t>(from)));
  });
}

/// One side makes a group of all, the other one call after the other; and the other way round.
TEST(Transfer, GroupsNeedNotBeCutAlike) {
  constexpr uint32_t kNumber = 100;
  Ranks ranks(2);
  for (bool sendsInGroup : {true, false})
    ranks.run([&](uint32_t r) {
      const bool isGroup = (r == 0) == sendsInGroup;
      std::vector<std::vector<int32_t>> values;
      for (uint32_t i = 0; i < kNumber; ++i)
        values.push_back(numbers(i * 400, r == 0 ? static_cast<int32_t>(i) : -1));
      if (isGroup) {
        ASSERT_EQ(occlGroupStart(), occlSuccess);
      }
      for (auto &one : values)
        ASSERT_EQ(r == 0 ? send(one, 1, ranks[0]) : receive(one, 0, ranks[1]), occlSuccess);
      if (isGroup) {
        ASSERT_EQ(occlGroupEnd(), occlSuccess) << occlGetLastError();
      }
      for (uint32_t i = 0; i < kNumber; ++i)
        ASSERT_EQ(values[i], numbers(i * 400, static_cast<int32_t>(i)));
    });
}

TEST(Transfer, GroupsMayBeNestedAndEmpty) {
  Ranks ranks(1);
  std::vector<int32_t> got(3), sent = numbers(3, 5);
  ASSERT_EQ(occlGroupStart(), occlSuccess);
  ASSERT_EQ(occlGroupEnd(), occlSuccess);
  ASSERT_EQ(occlGroupStart(), occlSuccess);
  ASSERT_EQ(receive(got, 0, ranks[0]), occlSuccess);
  ASSERT_EQ(occlGroupStart(), occlSuccess);
  ASSERT_EQ(send(sent, 0, ranks[0]), occlSuccess);
  ASSERT_EQ(occlGroupEnd(), occlSuccess);
  EXPECT_EQ(got, std::vector<int32_t>(3)) << "before the outermost has ended";
  ASSERT_EQ(occlGroupEnd(), occlSuccess);
  EXPECT_EQ(got, sent);
  EXPECT_EQ(occlGroupEnd(), occlInvalidArgument);
}

/// One thread has the ranks of two communicators, and whole ones at that.
TEST(Transfer, AGroupOfSeveralCommunicators) {
  constexpr uint32_t kRanks = 3;
  for (uint64_t count : kCounts) {
    Ranks first(kRanks), second(kRanks);
    std::vector<std::vector<int32_t>> got(2 * kRanks, std::vector<int32_t>(count, -1)), sent;
    for (uint32_t i = 0; i < 2 * kRanks; ++i)
      sent.push_back(numbers(count, static_cast<int32_t>(i)));
    ASSERT_EQ(occlGroupStart(), occlSuccess);
    for (uint32_t i = 0; i < 2 * kRanks; ++i) {
      const Ranks &ranks = i < kRanks ? first : second;
      const uint32_t r = i % kRanks;
      ASSERT_EQ(send(sent[i], (r + 1) % kRanks, ranks[r]), occlSuccess);
      ASSERT_EQ(receive(got[i], (r + kRanks - 1) % kRanks, ranks[r]), occlSuccess);
    }
    ASSERT_EQ(occlGroupEnd(), occlSuccess) << occlGetLastError();
    for (uint32_t i = 0; i < 2 * kRanks; ++i)
      EXPECT_EQ(got[i], sent[i / kRanks * kRanks + (i + kRanks - 1) % kRanks]) << i;
  }
}

/// Threads of a rank with a pair each, beside collectives that are in flight in other orders.
TEST(Transfer, BesideCollectives) {
  constexpr uint32_t kRanks = 3, kRounds = 30;
  Ranks ranks(kRanks);
  PlanHandle handle = handleOf(plan::testing::ringAllReduce(kRanks));
  std::vector<Job> jobs;
  for (uint32_t j = 0; j < 3; ++j)
    jobs.emplace_back(j, handle, 5000 << (2 * j));
  ranks.run([&](uint32_t r) {
    std::thread transfers([&] {
      for (uint32_t i = 0; i < kRounds; ++i)
        ASSERT_EQ(TransferGraph(kRanks, 50, 200000, i).run(ranks[r], r), "");
    });
    for (uint32_t i = 0; i < kRounds; ++i)
      EXPECT_EQ(runInOrder(ranks[r], jobs, r, latinOrder(3, r, i)), "");
    transfers.join();
  });
}

/// A collective in flight waits for one that its peer submits after the transfers.
TEST(Transfer, WhileACollectiveWaits) {
  Ranks ranks(2);
  Job job(0, handleOf(plan::testing::ringAllReduce(2)), 100000);
  ranks.run([&](uint32_t r) {
    occlRequest_t request = 0;
    if (r == 0) {
      ASSERT_EQ(job.submit(ranks[0], 0, &request), occlSuccess);
    }
    std::vector<int32_t> values = numbers(100000, 3);
    ASSERT_EQ(r == 0 ? send(values, 1, ranks[0]) : receive(values, 0, ranks[1]), occlSuccess);
    if (r == 1) {
      ASSERT_EQ(job.submit(ranks[1], 1, &request), occlSuccess);
    }
    ASSERT_EQ(occlWait(ranks[r], request), occlSuccess);
    EXPECT_EQ(job.check(r), "");
  });
}

/// The smallest communicator has room for any number of transfers.
TEST(Transfer, TakeNothingOfWhatCollectivesNeed) {
  occlConfig_t config = OCCL_CONFIG_INITIALIZER;
  config.maxInFlight = 1;
  config.arenaBytes = 4096;
  constexpr uint32_t kRanks = 4;
  Ranks ranks(kRanks, config);
  ranks.run(
      [&](uint32_t r) { ASSERT_EQ(TransferGraph(kRanks, 300, 300000, 1).run(ranks[r], r), ""); });
}

/// On a thread of the library, large ones too, while the program waits for the collective.
TEST(Transfer, FromACallback) {
  struct Sender {
    occlComm_t comm;
    std::vector<int32_t> values;
    occlResult_t result;
    std::atomic<bool> hasReturned;
  };
  Ranks ranks(2);
  Job job(0, handleOf(plan::testing::ringAllReduce(2)), 100);
  const std::vector<int32_t> expected = numbers(100000, 6);
  Sender sender{ranks[0], expected, occlInternalError, false};
  ranks.run([&](uint32_t r) {
    occlCallback_t callback = [](occlRequest_t, occlResult_t, void *user) {
      auto &own = *static_cast<Sender *>(user);
      own.result = send(own.values, 1, own.comm);
      own.hasReturned = true;
    };
    if (r == 0) {
      ASSERT_EQ(job.submit(ranks[0], 0, nullptr, callback, &sender), occlSuccess);
      while (!sender.hasReturned)
        std::this_thread::sleep_for(1ms);
      return;
    }
    occlRequest_t request = 0;
    ASSERT_EQ(job.submit(ranks[1], 1, &request), occlSuccess);
    ASSERT_EQ(occlWait(ranks[1], request), occlSuccess);
    std::vector<int32_t> got(expected.size());
    ASSERT_EQ(receive(got, 0, ranks[1]), occlSuccess);
    EXPECT_EQ(got, expected);
  });
  EXPECT_EQ(sender.result, occlSuccess);
}

/// It is run by the thread that waits, which is inside of a group, and sends all the same.
TEST(Transfer, FromACallbackInsideOfAGroup) {
  Ranks ranks(2);
  Job job(0, handleOf(plan::testing::ringAllReduce(2)), 100);
  job.setCallbackKind(CallbackKind::NeverBlocks);
  struct Sender {
    occlComm_t comm;
    std::atomic<int> result{-1};
  } sender{ranks[0]};
  ranks.run([&](uint32_t r) {
    std::vector<int32_t> values = numbers(10, 3), got(10), later(10);
    if (r == 1) {
      occlRequest_t request = 0;
      ASSERT_EQ(job.submit(ranks[1], 1, &request), occlSuccess);
      ASSERT_EQ(occlWait(ranks[1], request), occlSuccess);
      ASSERT_EQ(receive(got, 0, ranks[1]), occlSuccess);
      EXPECT_EQ(got, numbers(10, 7)) << "the callback's is the first";
      ASSERT_EQ(receive(later, 0, ranks[1]), occlSuccess);
      EXPECT_EQ(later, values);
      return;
    }
    occlCallback_t callback = [](occlRequest_t, occlResult_t, void *user) {
      auto &own = *static_cast<Sender *>(user);
      std::vector<int32_t> ofCallback = numbers(10, 7);
      own.result = send(ofCallback, 1, own.comm);
    };
    ASSERT_EQ(occlGroupStart(), occlSuccess);
    ASSERT_EQ(send(values, 1, ranks[0]), occlSuccess);
    ASSERT_EQ(job.submit(ranks[0], 0, nullptr, callback, &sender), occlSuccess);
    while (sender.result < 0)
      std::this_thread::yield();
    ASSERT_EQ(occlGroupEnd(), occlSuccess) << occlGetLastError();
  });
  EXPECT_EQ(sender.result, occlSuccess);
}

/// Which is first is theirs to order; here they are alike. One of them is behind the other.
TEST(Transfer, TwoThreadsOfARankToOneRank) {
  constexpr int kRounds = 200;
  Ranks ranks(2);
  const std::vector<int32_t> large = numbers(100000, 5);
  ranks.run([&](uint32_t r) {
    std::vector<std::thread> threads;
    for (int t = 0; t < 2; ++t)
      threads.emplace_back([&] {
        std::vector<int32_t> got(large.size());
        for (int i = 0; i < kRounds; ++i) {
          got.assign(got.size(), 0);
          ASSERT_EQ(r == 0 ? send(large, 1, ranks[0]) : receive(got, 0, ranks[1]), occlSuccess)
              << occlGetLastError();
          ASSERT_TRUE(r == 0 || got == large);
        }
      });
    for (std::thread &thread : threads)
      thread.join();
  });
}

TEST(Transfer, Counters) {
  Ranks ranks(2);
  ranks.run([&](uint32_t r) {
    std::vector<int32_t> values(30000);
    for (uint64_t count : {100, 30000}) {
      values.resize(count);
      ASSERT_EQ(r == 0 ? send(values, 1, ranks[0]) : receive(values, 0, ranks[1]), occlSuccess);
    }
    ASSERT_EQ(occlGroupStart(), occlSuccess);
    int32_t own = 1, got = 0;
    ASSERT_EQ(occlSend(&own, 1, occlInt32, r, ranks[r], nullptr), occlSuccess);
    ASSERT_EQ(occlRecv(&got, 1, occlInt32, r, ranks[r], nullptr), occlSuccess);
    ASSERT_EQ(occlGroupEnd(), occlSuccess);
    occlStats_t stats{};
    stats.size = sizeof stats;
    ASSERT_EQ(occlCommGetStats(ranks[r], &stats), occlSuccess);
    EXPECT_EQ(stats.bytesSent, r == 0 ? 4u * 30101 : 4u);
    EXPECT_EQ(stats.bytesReceived, r == 1 ? 4u * 30101 : 4u);
    EXPECT_EQ(stats.submitted, 0u);
    EXPECT_EQ(stats.completed, 0u);
  });
}

} // namespace
} // namespace occl::communicator::testing
