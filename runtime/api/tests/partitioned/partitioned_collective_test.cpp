// What a partitioned collective promises beyond its result: early arrival, independence of rounds,
// the same bits however it is divided, and an end whatever the orders.
#include "plan/testing/direct_plans.h"
#include "plan/testing/example_plans.h"
#include "runtime/api/occl_partitioned_collectives.h"
#include "runtime/api/occl_transfer.h"
#include "runtime/api/tests/partitioned/pair.h"
#include "support/testing/seed.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <random>

namespace occl::communicator::testing {
namespace {

constexpr uint64_t kPiece = 32; // int32 that a chunk of rounds is made of: 128 bytes

occlPartConfig_t inRounds(uint64_t rounds) {
  occlPartConfig_t config = OCCL_PART_CONFIG_INITIALIZER;
  config.rounds = rounds;
  return config;
}

/// All-reduces of one rank each, of int32: rank r's input is r + 1 everywhere.
struct Sums {
  Sums(const Ranks &ranks, int64_t sent, int64_t received, uint64_t count, uint64_t rounds)
      : ranks(ranks), inputs(ranks.size()), outputs(ranks.size()), parts(ranks.size()) {
    const occlPartConfig_t config = inRounds(rounds);
    for (uint32_t r = 0; r < ranks.size(); ++r) {
      inputs[r].assign(count, static_cast<int32_t>(r + 1));
      outputs[r].assign(count, -1);
      EXPECT_EQ(occlPallReduceInit(inputs[r].data(), sent, outputs[r].data(), received, count,
                                   occlInt32, occlSum, ranks[r], &config, &parts[r]),
                occlSuccess)
          << lastText();
    }
  }
  void start() {
    for (const Part &part : parts)
      EXPECT_EQ(occlPstart(part), occlSuccess) << lastText();
  }
  void mark(int64_t p) {
    for (const Part &part : parts)
      EXPECT_EQ(occlPready(part, p), occlSuccess) << lastText();
  }
  void wait() {
    ranks.run([&](uint32_t r) { EXPECT_EQ(occlPwait(parts[r]), occlSuccess) << lastText(); });
    const auto n = static_cast<int32_t>(ranks.size());
    for (const auto &output : outputs)
      EXPECT_EQ(std::ranges::count(output, n * (n + 1) / 2), std::ssize(output));
  }

  const Ranks &ranks;
  std::vector<std::vector<int32_t>> inputs, outputs;
  std::vector<Part> parts;
};

/// Round by round, in an order of its own: what has been marked by all arrives, and nothing else.
TEST(PartitionedCollective, ArrivesBeforeTheRestIsMarked) {
  for (uint32_t n : {1u, 2u, 3u}) {
    const Ranks ranks(n);
    Sums sums(ranks, 4, 4, 4 * kPiece * n, 4);
    for (int epoch = 0; epoch < 3; ++epoch) {
      sums.start();
      std::vector<bool> isMarked(4);
      for (int64_t p : {2, 0, 3, 1}) {
        sums.mark(p);
        isMarked[static_cast<size_t>(p)] = true;
        for (const Part &part : sums.parts) {
          awaitArrival(part, p);
          for (int64_t q = 0; q < 4; ++q)
            ASSERT_EQ(arrivedNow(part, q), isMarked[static_cast<size_t>(q)] ? 1 : 0) << q;
        }
      }
      sums.wait();
    }
  }
}

/// A rank that marks nothing holds up what it is needed for, and nothing that is complete.
TEST(PartitionedCollective, NothingArrivesThatOneRankHasNotMarked) {
  const Ranks ranks(2);
  Sums sums(ranks, 2, 2, 4 * kPiece, 2);
  sums.start();
  sums.mark(1);
  ASSERT_EQ(occlPready(sums.parts[0], 0), occlSuccess);
  for (const Part &part : sums.parts) {
    awaitArrival(part, 1);
    for (int look = 0; look < 50; ++look)
      ASSERT_EQ(arrivedNow(part, 0), 0);
  }
  ASSERT_EQ(occlPready(sums.parts[1], 0), occlSuccess);
  sums.wait();
}

/// Each partition is made of what has arrived of the one before: a chain through all rounds.
TEST(PartitionedCollective, PartitionsMadeOfArrivedOnes) {
  constexpr int64_t kSteps = 8;
  const Ranks ranks(3);
  std::vector<std::vector<int32_t>> inputs(3, std::vector<int32_t>(kSteps * 3 * kPiece));
  std::vector<std::vector<int32_t>> outputs = inputs;
  std::vector<Part> parts(3);
  const occlPartConfig_t config = inRounds(kSteps);
  ranks.run([&](uint32_t r) {
    constexpr auto kEach = static_cast<int64_t>(3 * kPiece);
    ASSERT_EQ(occlPallReduceInit(inputs[r].data(), kSteps, outputs[r].data(), kSteps,
                                 inputs[r].size(), occlInt32, occlSum, ranks[r], &config,
                                 &parts[r]),
              occlSuccess)
        << lastText();
    ASSERT_EQ(occlPstart(parts[r]), occlSuccess);
    int32_t last = 1;
    for (int64_t p = kSteps - 1; p >= 0; --p) { // from back to front
      std::fill_n(inputs[r].begin() + p * kEach, kEach, last);
      ASSERT_EQ(occlPready(parts[r], p), occlSuccess);
      awaitArrival(parts[r], p);
      last = outputs[r][static_cast<size_t>(p * kEach)];
    }
    EXPECT_EQ(last, 6561) << "3 to the 8";
    EXPECT_EQ(occlPwait(parts[r]), occlSuccess);
  });
}

/// A root's data reach the others round by round, too.
TEST(PartitionedCollective, ABroadcastArrivesPieceByPiece) {
  constexpr uint64_t kCount = 16 * kPiece;
  const Ranks ranks(3);
  std::vector<int32_t> source = numbersFrom(1, kCount);
  std::vector<std::vector<int32_t>> targets(3, std::vector<int32_t>(kCount));
  std::vector<Part> parts(3);
  const occlPartConfig_t config = inRounds(4);
  for (uint32_t r = 0; r < 3; ++r)
    ASSERT_EQ(occlPbroadcastInit(source.data(), 4, targets[r].data(), 4, kCount, occlInt32, 1,
                                 ranks[r], &config, &parts[r]),
              occlSuccess)
        << lastText();
  for (const Part &part : parts)
    ASSERT_EQ(occlPstart(part), occlSuccess);
  for (int64_t p : {3, 1, 0, 2}) {
    ASSERT_EQ(occlPready(parts[1], p), occlSuccess) << lastText();
    for (const Part &part : parts)
      awaitArrival(part, p);
  }
  ranks.run([&](uint32_t r) { EXPECT_EQ(occlPwait(parts[r]), occlSuccess); });
  for (const auto &target : targets)
    EXPECT_EQ(target, source);
}

/// Floats whose sum depends on the order of its terms: the bits are those of all ranks, of all
/// numbers of partitions, and of all orders of marks.
TEST(PartitionedCollective, BitsDependOnNoPartition) {
  const uint64_t seed = printedSeed();
  std::mt19937_64 random(seed);
  constexpr uint64_t kCount = 3001;
  const Ranks ranks(3);
  std::vector<std::vector<float>> inputs(3, std::vector<float>(kCount));
  std::normal_distribution<float> values(0, 1e6);
  for (auto &input : inputs)
    for (float &value : input)
      value = values(random);
  std::vector<float> first;
  const occlPartConfig_t config = inRounds(5);
  for (int64_t divided : {1, 2, 7, 33, 64, 500}) {
    std::vector<std::vector<float>> outputs(3, std::vector<float>(kCount));
    std::vector<uint64_t> seeds = {random(), random(), random()};
    ranks.run([&](uint32_t r) {
      const int64_t sent = divided + r; // each its own
      Part part;
      ASSERT_EQ(occlPallReduceInit(inputs[r].data(), sent, outputs[r].data(), divided, kCount,
                                   occlFloat32, occlAvg, ranks[r], &config, &part),
                occlSuccess);
      ASSERT_EQ(occlPstart(part), occlSuccess);
      std::vector<int64_t> order(static_cast<size_t>(sent));
      std::iota(order.begin(), order.end(), 0);
      std::ranges::shuffle(order, std::mt19937_64(seeds[r]));
      for (int64_t p : order)
        ASSERT_EQ(occlPready(part, p), occlSuccess);
      EXPECT_EQ(occlPwait(part), occlSuccess);
    });
    if (first.empty())
      first = outputs[0];
    for (const auto &output : outputs)
      EXPECT_TRUE(std::ranges::equal(output, first, {}, std::bit_cast<uint32_t, float>,
                                     std::bit_cast<uint32_t, float>))
          << divided;
  }
}

/// Several of them, calls with ids, calls in sequence, sends and receives, each rank in an order of
/// its own; and each rank marks the one last that another marks first.
TEST(PartitionedCollective, ConflictingOrders) {
  constexpr uint32_t kRanks = 3, kRequests = 4;
  constexpr uint64_t kCount = 1000;
  occlConfig_t config = withTimeout(60000);
  config.workers = 1;
  const Ranks ranks(kRanks, config);
  std::vector<std::unique_ptr<Sums>> all;
  for (uint32_t i = 0; i < kRequests; ++i)
    all.push_back(std::make_unique<Sums>(ranks, 3 + i, 5, kCount, i));
  ranks.run([&](uint32_t r) {
    std::vector<int32_t> plain(kCount, 1), sum(kCount), called(kCount), got(kCount);
    for (uint32_t iteration = 0; iteration < 20; ++iteration) {
      const auto order = latinOrder(kRequests, r, iteration);
      for (uint32_t i : order)
        ASSERT_EQ(occlPstart(all[i]->parts[r]), occlSuccess) << lastText();
      occlCall_t call = OCCL_CALL_INITIALIZER;
      call.kind = occlKindAllReduce;
      call.sendBuffer = plain.data();
      call.recvBuffer = sum.data();
      call.count = kCount;
      call.dataType = occlInt32;
      call.id = 5;
      occlRequest_t started = 0;
      ASSERT_EQ(occlStart(ranks[r], &call, nullptr, nullptr, &started), occlSuccess);
      const auto markAll = [&](uint32_t i) {
        ASSERT_EQ(occlPreadyRange(all[i]->parts[r], 0, 2 + i), occlSuccess) << lastText();
      };
      markAll(order[kRequests - 1]);
      call.recvBuffer = called.data();
      ASSERT_EQ(occlCall(ranks[r], &call, nullptr), occlSuccess) << lastText();
      ASSERT_EQ(occlGroupStart(), occlSuccess);
      ASSERT_EQ(occlSend(plain.data(), kCount, occlInt32, (r + 1) % kRanks, ranks[r], nullptr),
                occlSuccess);
      ASSERT_EQ(
          occlRecv(got.data(), kCount, occlInt32, (r + kRanks - 1) % kRanks, ranks[r], nullptr),
          occlSuccess);
      ASSERT_EQ(occlGroupEnd(), occlSuccess) << lastText();
      for (uint32_t i = 0; i + 1 < kRequests; ++i)
        markAll(order[i]);
      for (uint32_t i : latinOrder(kRequests, r, iteration + 1))
        ASSERT_EQ(occlPwait(all[i]->parts[r]), occlSuccess) << lastText();
      ASSERT_EQ(occlWait(ranks[r], started), occlSuccess);
      EXPECT_EQ(std::ranges::count(sum, 3), std::ssize(sum));
      EXPECT_EQ(std::ranges::count(called, 3), std::ssize(called));
    }
  });
  for (auto &sums : all)
    for (const auto &output : sums->outputs)
      EXPECT_EQ(std::ranges::count(output, 6), std::ssize(output));
}

/// Without a thread of the library a loop that only asks, or tests, ends.
TEST(PartitionedCollective, AskingMakesProgress) {
  const Ranks ranks(1);
  Sums sums(ranks, 3, 3, 3 * kPiece, 3);
  sums.start();
  sums.mark(1);
  awaitArrival(sums.parts[0], 1);
  sums.mark(0);
  sums.mark(2);
  while (occlPtest(sums.parts[0]) == occlInProgress)
    ;
  EXPECT_EQ(occlPtest(sums.parts[0]), occlSuccess) << "without an epoch";
  sums.start();
  for (int64_t p : {0, 1, 2})
    sums.mark(p);
  sums.wait();
}

/// As soon as the epoch has ended, whoever still returns from a mark of it.
TEST(PartitionedCollective, FreedBesideMarks) {
  constexpr int64_t kThreads = 3, kPartitions = 12;
  constexpr uint64_t kCount = 2 * kPiece;
  const Ranks ranks(2);
  ranks.run([&](uint32_t r) {
    for (int round = 0; round < 100; ++round) {
      std::vector<int32_t> input(kCount, 1), output(kCount);
      occlPart_t part = nullptr;
      ASSERT_EQ(occlPallReduceInit(input.data(), kPartitions, output.data(), 1, kCount, occlInt32,
                                   occlSum, ranks[r], nullptr, &part),
                occlSuccess)
          << lastText();
      ASSERT_EQ(occlPstart(part), occlSuccess) << lastText();
      std::vector<std::thread> threads;
      for (int64_t t = 0; t < kThreads; ++t)
        threads.emplace_back([&, part, t] {
          for (int64_t p = t; p < kPartitions; p += kThreads)
            EXPECT_EQ(occlPready(part, p), occlSuccess) << lastText();
        });
      occlResult_t result = occlInProgress;
      while (round % 2 && (result = occlPtest(part)) == occlInProgress)
        ;
      EXPECT_EQ(round % 2 ? result : occlPwait(part), occlSuccess) << lastText();
      EXPECT_EQ(occlPfree(part), occlSuccess) << lastText();
      EXPECT_EQ(std::ranges::count(output, 2), std::ssize(output));
      for (std::thread &thread : threads)
        thread.join();
    }
  });
}

/// Plans of a user's own, whose requirements the rounds take over.
TEST(PartitionedCollective, PlansOfOnesOwn) {
  constexpr uint32_t kRanks = 3;
  constexpr uint64_t kCount = 12 * kPiece;
  const PlanHandle ring = handleOf(plan::testing::ringAllReduce(kRanks)),
                   next = handleOf(plan::testing::shift(kRanks, 3));
  const Ranks ranks(kRanks);
  for (uint64_t rounds : {1, 4}) {
    ranks.run([&](uint32_t r) {
      const occlPartConfig_t config = inRounds(rounds);
      std::vector<int32_t> input = numbersFrom(static_cast<int32_t>(r), kCount), sum(kCount),
                           shifted(kCount, -1);
      occlCall_t call = OCCL_CALL_INITIALIZER;
      call.kind = occlKindPlan;
      call.plan = ring.get();
      call.sendBuffer = input.data();
      call.recvBuffer = sum.data();
      call.count = kCount;
      call.dataType = occlInt32;
      call.name = "mine";
      Part summed, moved;
      ASSERT_EQ(occlPcollInit(ranks[r], &call, 5, 4, &config, &summed), occlSuccess) << lastText();
      call.plan = next.get();
      call.recvBuffer = shifted.data();
      ASSERT_EQ(occlPcollInit(ranks[r], &call, 4, 7, &config, &moved), occlSuccess) << lastText();
      for (int epoch = 0; epoch < 3; ++epoch) {
        ASSERT_EQ(occlPstart(moved), occlSuccess) << lastText();
        ASSERT_EQ(occlPstart(summed), occlSuccess) << lastText();
        ASSERT_EQ(occlPreadyRange(summed, 0, 4), occlSuccess) << lastText();
        ASSERT_EQ(occlPreadyRange(moved, 0, 3), occlSuccess) << lastText();
        EXPECT_EQ(occlPwait(moved), occlSuccess) << lastText();
        EXPECT_EQ(occlPwait(summed), occlSuccess) << lastText();
        for (uint64_t i = 0; i < kCount; ++i)
          ASSERT_EQ(sum[i], static_cast<int32_t>(3 * i + 3));
        if (r != 0) {
          EXPECT_EQ(shifted, numbersFrom(static_cast<int32_t>(r - 1), kCount));
        }
      }
    });
  }
}

/// A plan that cannot be cut has one round, whatever its size: nothing is promised to arrive early.
TEST(PartitionedCollective, QueriedForItsRounds) {
  constexpr uint64_t kCount = 3 << 18; // 12 rounds of 256 KiB
  plan::Plan cut = plan::testing::shift(2, 3), uncut = cut;
  uncut.uniformChunks = true;
  const Ranks ranks(2);
  std::vector<int32_t> input(kCount), output(kCount);
  occlCall_t call = OCCL_CALL_INITIALIZER;
  call.kind = occlKindPlan;
  call.sendBuffer = input.data();
  call.recvBuffer = output.data();
  call.count = kCount;
  call.dataType = occlInt32;
  const auto query = [&](const plan::Plan &of, const occlPartConfig_t *config) {
    const PlanHandle plan = handleOf(of);
    call.plan = plan.get();
    Part part;
    EXPECT_EQ(occlPcollInit(ranks[0], &call, 4, 4, config, &part), occlSuccess) << lastText();
    occlPartInfo_t info = OCCL_PART_INFO_INITIALIZER;
    EXPECT_EQ(occlPquery(part, &info), occlSuccess) << lastText();
    EXPECT_EQ(info.messages, 0u);
    EXPECT_EQ(info.arrivesEarly, info.rounds > 1 ? 1 : 0);
    return info.rounds;
  };
  const occlPartConfig_t one = inRounds(1), three = inRounds(3);
  EXPECT_EQ(query(cut, nullptr), 12u);
  EXPECT_EQ(query(cut, &three), 3u);
  EXPECT_EQ(query(cut, &one), 1u);
  EXPECT_EQ(query(uncut, nullptr), 1u);
}

/// Pre-multiplied sums read a copy, made of each partition when it is marked; the scalar is read
/// when the request is made.
TEST(PartitionedCollective, ScaledInputs) {
  constexpr uint64_t kCount = 500;
  const Ranks ranks(2);
  ranks.run([&](uint32_t r) {
    std::vector<float> values(kCount), sums(kCount);
    for (float *output : {sums.data(), values.data()}) { // in place, too
      auto factor = std::make_unique<float>(static_cast<float>(r + 2));
      occlCall_t call = OCCL_CALL_INITIALIZER;
      call.kind = occlKindAllReduce;
      call.sendBuffer = values.data();
      call.recvBuffer = output;
      call.count = kCount;
      call.dataType = occlFloat32;
      call.scalar = factor.get();
      const occlPartConfig_t config = inRounds(3);
      Part part;
      ASSERT_EQ(occlPcollInit(ranks[r], &call, 7, 4, &config, &part), occlSuccess) << lastText();
      factor.reset();
      for (int epoch = 1; epoch < 4; ++epoch) {
        ASSERT_EQ(occlPstart(part), occlSuccess);
        std::ranges::fill(values, static_cast<float>(epoch)); // after the start
        for (int64_t p : {5, 0, 6, 1, 3, 2, 4})
          ASSERT_EQ(occlPready(part, p), occlSuccess) << lastText();
        ASSERT_EQ(occlPwait(part), occlSuccess) << lastText();
        EXPECT_EQ(std::count(output, output + kCount, static_cast<float>(5 * epoch)),
                  static_cast<int64_t>(kCount));
      }
    }
  });
}

/// In place, what a rank gives to an all-gather has not arrived before it has marked it.
TEST(PartitionedCollective, TheOwnPartInPlace) {
  constexpr uint64_t kCount = 4 * kPiece;
  const Ranks ranks(2);
  std::vector<std::vector<int32_t>> all(2, std::vector<int32_t>(2 * kCount, -1));
  std::vector<Part> parts(2);
  const occlPartConfig_t config = inRounds(1);
  for (uint32_t r = 0; r < 2; ++r) {
    ASSERT_EQ(occlPallGatherInit(all[r].data() + r * kCount, 4, all[r].data(), 8, kCount, occlInt32,
                                 ranks[r], &config, &parts[r]),
              occlSuccess);
    ASSERT_EQ(occlPstart(parts[r]), occlSuccess);
  }
  for (int64_t p = 0; p < 4; ++p) {
    EXPECT_EQ(arrivedNow(parts[1], 4 + p), 0);
    ASSERT_EQ(occlPready(parts[1], p), occlSuccess);
  }
  EXPECT_EQ(arrivedNow(parts[1], 0), 0);
  ASSERT_EQ(occlPreadyRange(parts[0], 0, 3), occlSuccess);
  for (int64_t q = 0; q < 8; ++q)
    awaitArrival(parts[1], q);
  ranks.run([&](uint32_t r) { EXPECT_EQ(occlPwait(parts[r]), occlSuccess); });
}

/// Requests come and go; many are open at a time.
TEST(PartitionedCollective, ManyRequests) {
  const Ranks ranks(2);
  for (int round = 0; round < 3; ++round) {
    std::vector<std::unique_ptr<Sums>> all;
    for (uint32_t i = 0; i < 100; ++i)
      all.push_back(std::make_unique<Sums>(ranks, 2, 2, 64 + i % 3, 2));
    for (auto &sums : all)
      sums->start();
    for (size_t i = all.size(); i-- > 0;)
      for (int64_t p : {1, 0})
        all[i]->mark(p);
    for (auto &sums : all)
      sums->wait();
  }
}

} // namespace
} // namespace occl::communicator::testing
