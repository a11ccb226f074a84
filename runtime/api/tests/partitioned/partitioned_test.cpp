// Partitioned transfers between threads: data, arrival and order, against a reference.
#include "runtime/api/occl_transfer.h"
#include "runtime/api/testing/partitioned_graph.h"
#include "runtime/api/testing/transfer_graph.h"
#include "runtime/api/tests/partitioned/pair.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <limits>
#include <memory>
#include <random>

namespace occl::communicator::testing {
namespace {

TEST(Partitioned, RandomOnes) {
  const uint64_t seed = printedSeed();
  for (uint32_t round = 0; round < 12 / kSlowness + 1; ++round) {
    const uint32_t numRanks = 1 + round % 4;
    const PartitionedGraph graph(numRanks, 12, 300000, seed + round);
    const Ranks ranks(numRanks);
    ranks.run([&](uint32_t r) { EXPECT_EQ(graph.run(ranks[r], r, 4, nullptr), ""); });
  }
}

/// Each order of marks: what has arrived is what is covered by what is ready, neither more nor
/// less.
TEST(Partitioned, ArrivesAsEarlyAsTheDataAllow) {
  std::mt19937_64 random(printedSeed());
  constexpr std::pair<int64_t, int64_t> kCounts[] = {{1, 1},   {8, 8},   {1, 16}, {16, 1},
                                                     {33, 17}, {17, 33}, {6, 4}};
  for (const auto &[p, q] : kCounts) {
    const Pair pair(p, q, static_cast<uint64_t>(p * q * 3));
    std::vector<int64_t> order(static_cast<size_t>(p));
    for (int64_t epoch = 1; epoch <= 3; ++epoch) {
      std::iota(order.begin(), order.end(), 0);
      std::ranges::shuffle(order, random);
      pair.start();
      std::vector<bool> ready(static_cast<size_t>(p));
      for (int64_t marked : order) {
        ASSERT_EQ(occlPready(pair.send, marked), occlSuccess) << lastText();
        ready[static_cast<size_t>(marked)] = true;
        for (int64_t at = 0; at < q; ++at) {
          bool covered = true;
          for (int64_t other = 0; other < p; ++other)
            if (other * q < (at + 1) * p && at * p < (other + 1) * q)
              covered = covered && ready[static_cast<size_t>(other)];
          if (covered)
            awaitArrival(pair.receive, at);
          else
            ASSERT_EQ(arrivedNow(pair.receive, at), 0) << p << " to " << q << ", " << at;
        }
      }
      pair.wait();
    }
  }
}

TEST(Partitioned, ManyPartitions) {
  for (const auto &[p, q] : {std::pair<int64_t, int64_t>{8192, 512}, {512, 8192}, {4096, 4096}})
    for (uint64_t perMessage : {0, 16}) {
      Pair pair(p, q, 1 << 16, perMessage);
      for (int32_t epoch = 1; epoch <= 3; ++epoch) {
        std::iota(pair.source.begin(), pair.source.end(), epoch);
        pair.start();
        ASSERT_EQ(occlPreadyRange(pair.send, 0, p - 1), occlSuccess) << lastText();
        pair.wait();
        ASSERT_EQ(pair.target, pair.source);
      }
    }
}

/// Its partitions end one by one, those of a message together.
TEST(Partitioned, MessagesOfSeveralPartitions) {
  const Pair pair(7, 7, 7, 3);
  for (int epoch = 0; epoch < 3; ++epoch) {
    pair.start();
    for (int64_t p : {0, 1, 3, 5, 6})
      ASSERT_EQ(occlPready(pair.send, p), occlSuccess);
    awaitArrival(pair.receive, 6);
    for (int64_t q : {0, 1, 2, 3, 4, 5})
      EXPECT_EQ(arrivedNow(pair.receive, q), 0);
    ASSERT_EQ(occlPready(pair.send, 2), occlSuccess);
    for (int64_t q : {0, 1, 2})
      awaitArrival(pair.receive, q);
    EXPECT_EQ(arrivedNow(pair.receive, 4), 0);
    ASSERT_EQ(occlPready(pair.send, 4), occlSuccess);
    pair.wait();
  }
}

/// No thread waits. (Without workers, too: requests_test.)
TEST(Partitioned, ALoopOfArrivedAloneEnds) {
  Ranks ranks(2);
  std::vector<int32_t> source = numbersFrom(1, 40), target(40);
  Part send, receive;
  ASSERT_EQ(occlPrecvInit(ranks[1], target.data(), 4, 10, occlInt32, 0, 0, nullptr, &receive),
            occlSuccess);
  ASSERT_EQ(occlPstart(receive), occlSuccess);
  EXPECT_EQ(arrivedNow(receive, 0), 0) << "it is not even matched";
  ASSERT_EQ(occlPsendInit(ranks[0], source.data(), 5, 8, occlInt32, 1, 0, nullptr, &send),
            occlSuccess);
  ASSERT_EQ(occlPstart(send), occlSuccess);
  ASSERT_EQ(occlPreadyRange(send, 0, 4), occlSuccess);
  for (int64_t q = 0; q < 4; ++q)
    awaitArrival(receive, q);
  EXPECT_EQ(target, source);
  EXPECT_EQ(occlPtest(send), occlSuccess) << "so does one that only tests";
  EXPECT_EQ(occlPwait(receive), occlSuccess);
}

/// Ready is long over when the receiver comes.
TEST(Partitioned, TheReceiverComesLate) {
  const Ranks ranks(2);
  std::vector<int32_t> source = numbersFrom(5, 12), target(12);
  Part send, receive;
  ASSERT_EQ(occlPsendInit(ranks[0], source.data(), 3, 4, occlInt32, 1, 9, nullptr, &send),
            occlSuccess);
  ASSERT_EQ(occlPstart(send), occlSuccess);
  ASSERT_EQ(occlPreadyRange(send, 0, 2), occlSuccess);
  EXPECT_EQ(occlPtest(send), occlInProgress);
  ASSERT_EQ(occlPrecvInit(ranks[1], target.data(), 4, 3, occlInt32, 0, 9, nullptr, &receive),
            occlSuccess);
  EXPECT_EQ(occlPtest(send), occlInProgress) << "it has not started";
  ASSERT_EQ(occlPstart(receive), occlSuccess);
  EXPECT_EQ(occlPwait(receive), occlSuccess);
  EXPECT_EQ(occlPwait(send), occlSuccess);
  EXPECT_EQ(target, source);
}

/// By tag, and of one tag in the order of init; those of tags in any order.
TEST(Partitioned, Matching) {
  const Ranks ranks(2);
  constexpr int64_t kTags[] = {0, 5, 0, std::numeric_limits<int64_t>::max(), 5};
  std::array<std::vector<int32_t>, 5> source, target;
  std::array<Part, 5> sends, receives;
  for (size_t i : {0, 1, 2, 3, 4}) {
    source[i] = numbersFrom(static_cast<int32_t>(100 * i), 6);
    ASSERT_EQ(
        occlPsendInit(ranks[0], source[i].data(), 2, 3, occlInt32, 1, kTags[i], nullptr, &sends[i]),
        occlSuccess);
  }
  for (size_t i : {3, 1, 0, 4, 2}) { // of a tag as there
    target[i].resize(6);
    ASSERT_EQ(occlPrecvInit(ranks[1], target[i].data(), 3, 2, occlInt32, 0, kTags[i], nullptr,
                            &receives[i]),
              occlSuccess);
  }
  for (size_t i : {4, 3, 2, 1, 0}) {
    ASSERT_EQ(occlPstart(sends[i]), occlSuccess);
    ASSERT_EQ(occlPreadyRange(sends[i], 0, 1), occlSuccess);
    ASSERT_EQ(occlPstart(receives[i]), occlSuccess);
  }
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(occlPwait(receives[i]), occlSuccess);
    EXPECT_EQ(occlPwait(sends[i]), occlSuccess);
    EXPECT_EQ(target[i], source[i]) << i;
  }
}

/// More than the notices' ring holds, before the peer looks at any; made and freed over and over.
TEST(Partitioned, ManyRequests) {
  const Ranks ranks(2);
  for (int round = 0; round < 3; ++round) {
    constexpr size_t kRequests = 300;
    std::vector<int32_t> source = numbersFrom(round, kRequests), target(kRequests);
    std::vector<Part> sends(kRequests), receives(kRequests);
    for (size_t i = 0; i < kRequests; ++i)
      ASSERT_EQ(occlPsendInit(ranks[0], &source[i], 1, 1, occlInt32, 1, 1, nullptr, &sends[i]),
                occlSuccess);
    for (size_t i = 0; i < kRequests; ++i)
      ASSERT_EQ(occlPrecvInit(ranks[1], &target[i], 1, 1, occlInt32, 0, 1, nullptr, &receives[i]),
                occlSuccess);
    for (size_t i = 0; i < kRequests; ++i) {
      ASSERT_EQ(occlPstart(sends[i]), occlSuccess);
      ASSERT_EQ(occlPready(sends[i], 0), occlSuccess);
      ASSERT_EQ(occlPstart(receives[kRequests - 1 - i]), occlSuccess);
    }
    for (size_t i = 0; i < kRequests; ++i) {
      ASSERT_EQ(occlPwait(receives[i]), occlSuccess) << lastText();
      ASSERT_EQ(occlPwait(sends[i]), occlSuccess);
    }
    EXPECT_EQ(target, source);
  }
}

/// Words are used again when both sides have freed: more in all than there is room for.
TEST(Partitioned, WordsComeBack) {
  const Ranks ranks(2);
  const int64_t most = OCCL_MAX_PARTITIONS;
  std::vector<uint8_t> source(static_cast<size_t>(most), 3), target(static_cast<size_t>(most));
  for (int round = 0; round < 6; ++round) {
    Part send, receive;
    ASSERT_EQ(occlPsendInit(ranks[0], source.data(), most, 1, occlUint8, 1, 0, nullptr, &send),
              occlSuccess)
        << lastText();
    ASSERT_EQ(occlPrecvInit(ranks[1], target.data(), 1, static_cast<uint64_t>(most), occlUint8, 0,
                            0, nullptr, &receive),
              occlSuccess);
    ASSERT_EQ(occlPstart(send), occlSuccess);
    ASSERT_EQ(occlPstart(receive), occlSuccess);
    ASSERT_EQ(occlPreadyRange(send, 0, most - 1), occlSuccess);
    ASSERT_EQ(occlPwait(receive), occlSuccess);
    ASSERT_EQ(occlPwait(send), occlSuccess);
  }
  EXPECT_EQ(target, source);
  // One that the peer never hears of holds them until it has.
  std::array<Part, 3> parts;
  const auto make = [&](Part &part) {
    return occlPsendInit(ranks[0], source.data(), most, 1, occlUint8, 1, 4, nullptr, &part);
  };
  ASSERT_EQ(make(parts[0]), occlSuccess);
  EXPECT_EQ(make(parts[1]), occlAgain);
  EXPECT_TRUE(hasText("no room for the words of 1048576 messages")) << lastText();
}

/// A partition is computed from one that has arrived, there and back again; small sends that nobody
/// has received yet stand in no way.
TEST(Partitioned, ChainsOfArrivals) {
  const Ranks ranks(2);
  constexpr int64_t kSteps = 50;
  const int32_t small = 41;
  ranks.run([&](uint32_t r) {
    std::vector<int64_t> out(kSteps), in(kSteps);
    Part send, receive;
    ASSERT_EQ(occlPsendInit(ranks[r], out.data(), kSteps, 1, occlInt64, 1 - r, 0, nullptr, &send),
              occlSuccess);
    ASSERT_EQ(occlPrecvInit(ranks[r], in.data(), kSteps, 1, occlInt64, 1 - r, 0, nullptr, &receive),
              occlSuccess);
    ASSERT_EQ(occlSend(&small, 1, occlInt32, 1 - r, ranks[r], nullptr), occlSuccess);
    for (int epoch = 0; epoch < 3; ++epoch) {
      ASSERT_EQ(occlPstart(send), occlSuccess);
      ASSERT_EQ(occlPstart(receive), occlSuccess);
      for (int64_t i = 0; i < kSteps; ++i) {
        if (r == 1 || i > 0)
          awaitArrival(receive, r == 1 ? i : i - 1);
        out[static_cast<size_t>(i)] = r == 1   ? in[static_cast<size_t>(i)] + 1
                                      : i == 0 ? 1
                                               : in[static_cast<size_t>(i - 1)] + 1;
        ASSERT_EQ(occlPready(send, i), occlSuccess);
      }
      ASSERT_EQ(occlPwait(receive), occlSuccess);
      ASSERT_EQ(occlPwait(send), occlSuccess);
      EXPECT_EQ(in.back(), r == 0 ? 2 * kSteps : 2 * kSteps - 1);
    }
    int32_t got = 0;
    ASSERT_EQ(occlRecv(&got, 1, occlInt32, 1 - r, ranks[r], nullptr), occlSuccess);
    EXPECT_EQ(got, small);
  });
}

/// Some threads mark, another one waits meanwhile, and frees at once.
TEST(Partitioned, WaitBesideMarks) {
  for (int round = 0; round < 30; ++round) {
    Pair pair(48, 5, 240, round % 2 ? 7 : 0);
    pair.start();
    const occlPart_t send = pair.send;
    std::vector<std::thread> threads;
    for (int64_t t = 0; t < 3; ++t)
      threads.emplace_back([&, t] {
        for (int64_t p = t; p < 48; p += 3) {
          for (int64_t i = 5 * p; i < 5 * (p + 1); ++i)
            pair.source[static_cast<size_t>(i)] = static_cast<int32_t>(i);
          ASSERT_EQ(occlPready(send, p), occlSuccess) << lastText();
        }
      });
    pair.wait();
    EXPECT_EQ(pair.target, numbersFrom(0, 240));
    EXPECT_EQ(pair.send.free(), occlSuccess) << lastText(); // whoever still returns from a mark
    EXPECT_EQ(pair.receive.free(), occlSuccess) << lastText();
    for (std::thread &thread : threads)
      thread.join();
  }
}

TEST(Partitioned, PrepareReturnsWhenThePeerHasStarted) {
  const Pair pair(2, 2, 2);
  for (int epoch = 0; epoch < 3; ++epoch) {
    std::thread sender([&] {
      EXPECT_EQ(occlPstart(pair.send), occlSuccess);
      EXPECT_EQ(occlPprepare(pair.send), occlSuccess) << lastText();
      EXPECT_EQ(occlPreadyRange(pair.send, 0, 1), occlSuccess);
      EXPECT_EQ(occlPwait(pair.send), occlSuccess);
    });
    EXPECT_EQ(occlPstart(pair.receive), occlSuccess);
    EXPECT_EQ(occlPprepare(pair.receive), occlSuccess);
    EXPECT_EQ(occlPwait(pair.receive), occlSuccess);
    sender.join();
  }
}

/// Of no partitions a receive's epoch needs nothing of the peer, and a send's only that it has been
/// received: that the peer has started is asked for all the same.
class PrepareNothing : public ::testing::Test {
protected:
  void make(uint32_t timeoutMs = 20000) {
    ranks = std::make_unique<Ranks>(2, withTimeout(timeoutMs));
    ASSERT_EQ(occlPsendInit((*ranks)[0], nullptr, 0, 1, occlInt32, 1, 0, nullptr, &send),
              occlSuccess)
        << lastText();
    ASSERT_EQ(occlPrecvInit((*ranks)[1], nullptr, 0, 1, occlInt32, 0, 0, nullptr, &receive),
              occlSuccess)
        << lastText();
    ASSERT_EQ(occlPstart(receive), occlSuccess) << lastText();
  }

  std::unique_ptr<Ranks> ranks;
  Part send, receive;
};

TEST_F(PrepareNothing, ReturnsWhenThePeerHasStarted) {
  make();
  std::atomic<bool> isStarting{false};
  std::thread receiver([&] {
    EXPECT_EQ(occlPprepare(receive), occlSuccess) << lastText();
    EXPECT_TRUE(isStarting.load());
  });
  for (int looks = 0; looks < 1000; ++looks)
    std::this_thread::yield();
  isStarting.store(true);
  EXPECT_EQ(occlPstart(send), occlSuccess) << lastText();
  EXPECT_EQ(occlPprepare(send), occlSuccess) << lastText();
  receiver.join();
  EXPECT_EQ(occlPwait(send), occlSuccess) << lastText();
  EXPECT_EQ(occlPwait(receive), occlSuccess) << lastText();
}

TEST_F(PrepareNothing, SaysThatThePeerHasFreedItsSide) {
  make();
  EXPECT_EQ(send.free(), occlSuccess);
  EXPECT_EQ(occlPprepare(receive), occlMismatch);
  EXPECT_TRUE(
      hasText("partitioned receive from rank 0 to rank 1, tag 0, epoch 1: rank 0 has freed"))
      << lastText();
}

TEST_F(PrepareNothing, HasADeadline) {
  make(300);
  EXPECT_EQ(occlPprepare(receive), occlTimeout);
  EXPECT_TRUE(hasText("epoch 1: rank 0 has not started it")) << lastText();
}

/// Its receive learns it with the match.
TEST(Partitioned, QueriedForItsMessages) {
  for (const auto &[perMessage, messages] : {std::pair{0, 5}, {2, 3}, {5, 1}}) {
    const Ranks ranks(2);
    std::vector<int32_t> values(10);
    occlPartConfig_t config = OCCL_PART_CONFIG_INITIALIZER;
    config.partitionsPerMessage = static_cast<uint64_t>(perMessage);
    Part send, receive;
    ASSERT_EQ(occlPrecvInit(ranks[1], values.data(), 2, 5, occlInt32, 0, 0, nullptr, &receive),
              occlSuccess);
    occlPartInfo_t info = OCCL_PART_INFO_INITIALIZER;
    info.messages = 77;
    ASSERT_EQ(occlPquery(receive, &info), occlSuccess);
    EXPECT_EQ(info.messages, 0u) << "there is no send yet";
    EXPECT_EQ(info.arrivesEarly, 0);
    ASSERT_EQ(occlPsendInit(ranks[0], values.data(), 5, 2, occlInt32, 1, 0, &config, &send),
              occlSuccess);
    ASSERT_EQ(occlPstart(send), occlSuccess);
    ASSERT_EQ(occlPstart(receive), occlSuccess);
    ASSERT_EQ(occlPprepare(receive), occlSuccess);
    for (occlPart_t part : {occlPart_t{send}, occlPart_t{receive}}) {
      ASSERT_EQ(occlPquery(part, &info), occlSuccess);
      EXPECT_EQ(info.messages, static_cast<uint64_t>(messages));
      EXPECT_EQ(info.rounds, 0u);
      EXPECT_EQ(info.arrivesEarly, messages > 1 ? 1 : 0);
      EXPECT_EQ(info.size, sizeof info);
    }
    ASSERT_EQ(occlPreadyRange(send, 0, 4), occlSuccess);
    ASSERT_EQ(occlPwait(receive), occlSuccess);
    ASSERT_EQ(occlPwait(send), occlSuccess);
  }
}

TEST(Partitioned, QueriedWithAnOlderStruct) {
  const Pair pair(3, 3, 3);
  occlPartInfo_t info = OCCL_PART_INFO_INITIALIZER;
  info.arrivesEarly = -5;
  info.messages = 77;
  info.size = 2 * sizeof(size_t);
  ASSERT_EQ(occlPquery(pair.send, &info), occlSuccess);
  EXPECT_EQ(info.messages, 77u) << "beyond what the caller has";
  EXPECT_EQ(info.arrivesEarly, -5);
  info.size = 0;
  EXPECT_EQ(occlPquery(pair.send, &info), occlInvalidArgument);
  EXPECT_TRUE(hasText("OCCL_PART_INFO_INITIALIZER")) << lastText();
  EXPECT_EQ(occlPquery(nullptr, &info), occlInvalidArgument);
  EXPECT_EQ(occlPquery(pair.send, nullptr), occlInvalidArgument);
}

/// Bytes are counted as those of transfers.
TEST(Partitioned, Counters) {
  const Pair pair(4, 2, 400);
  pair.start();
  ASSERT_EQ(occlPreadyRange(pair.send, 0, 3), occlSuccess);
  pair.wait();
  occlStats_t stats;
  stats.size = sizeof stats;
  ASSERT_EQ(occlCommGetStats(pair.ranks[0], &stats), occlSuccess);
  EXPECT_EQ(stats.bytesSent, 1600u);
  EXPECT_EQ(stats.submitted, 0u) << "no invocation";
  ASSERT_EQ(occlCommGetStats(pair.ranks[1], &stats), occlSuccess);
  EXPECT_EQ(stats.bytesReceived, 1600u);
}

} // namespace
} // namespace occl::communicator::testing
