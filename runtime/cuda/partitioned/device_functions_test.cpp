// The functions that kernels have of partitioned requests, as host code: ranks, and thread blocks,
// are threads. The layout of requests is made here as cuda_parts.cpp makes it.
#include "runtime/api/occl_device.cuh"
#include "runtime/cuda/partitioned/arrival_words.h"
#include "runtime/cuda/partitioned/testing/parts_on_host.h"
#include "support/testing/seed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

namespace occl::device::detail {
namespace {

/// What kernels have of a collective of four partitions to two, of two thread blocks.
struct Collective {
  Collective() {
    state.side = Side::Collective;
    state.partitions = marked.size();
    state.marked = marked.data();
    state.outputs = outputs.data();
    state.numOutputs = outputs.size();
    state.numBlocks = 2;
    state.sends = &sends;
    state.watch.hasGivenUp = &givenUp;
    state.watch.abort = &abort;
    state.epoch = 1;
  }
  Misuse misuse() const {
    return static_cast<Misuse>(state.misuse >> (kMisusePartitionBits + kMisuseBlockBits));
  }

  std::vector<uint64_t> marked = std::vector<uint64_t>(4);
  std::vector<OutputPartition> outputs = {{0, 2, 0, 0}, {0, 1, 0, 3}}; // the second in place
  State state{};
  Sends sends{};
  uint32_t givenUp = 0, abort = 0;
};

TEST(DeviceFunctions, ACollectivesPartitionsArriveOnceAllThreadBlocksHaveMadeTheirs) {
  Collective collective;
  Part part(&collective.state);
  for (uint64_t p : {3, 0, 2})
    ready(Thread(), part, p);
  EXPECT_EQ(collective.marked, (std::vector<uint64_t>{1, 0, 1, 1}));
  EXPECT_FALSE(arrived(part, 0));
  collective.outputs[0].made = 1;
  EXPECT_FALSE(arrived(part, 0));
  EXPECT_EQ(wait(Thread(), part, 0, 1000), Wait::NotYet);
  collective.outputs[0].made = 2;
  EXPECT_TRUE(arrived(part, 0));
  collective.outputs[1].made = 1;
  EXPECT_FALSE(arrived(part, 1)) << "the program's own, of which partition 1 is not marked";
  ready(Thread(), part, 1);
  EXPECT_EQ(wait(Thread(), part, 1, 1000), Wait::Arrived);
  EXPECT_EQ(collective.misuse(), Misuse::None);
}

TEST(DeviceFunctions, MisuseOfACollectiveIsNoted) {
  const auto misused = [](auto use) {
    Collective collective;
    Part part(&collective.state);
    use(collective, part);
    return collective.misuse();
  };
  EXPECT_EQ(misused([](Collective &, Part &part) { ready(Thread(), part, 4); }),
            Misuse::NoPartition);
  EXPECT_EQ(misused([](Collective &, Part &part) { readyRange(Thread(), part, 0, 4); }),
            Misuse::NoPartition);
  EXPECT_EQ(misused([](Collective &, Part &part) {
              ready(Thread(), part, 2);
              ready(Thread(), part, 2);
            }),
            Misuse::Twice);
  EXPECT_EQ(misused([](Collective &, Part &part) { EXPECT_FALSE(arrived(part, 2)); }),
            Misuse::NoPartition);
  EXPECT_EQ(misused([](Collective &, Part &part) {
              EXPECT_EQ(flush(Thread(), part, 1000), Wait::Failed);
            }),
            Misuse::WrongSide);
  EXPECT_EQ(misused([](Collective &collective, Part &) { start({&collective.state}); }),
            Misuse::WrongSide)
      << "the host starts collectives";
  EXPECT_EQ(misused([](Collective &collective, Part &part) {
              collective.state.numOutputs = 0; // as of a reduce, away from the root
              EXPECT_FALSE(arrived(part, 0));
            }),
            Misuse::WrongSide);
  EXPECT_EQ(misused([](Collective &collective, Part &part) {
              collective.state.done = 1;
              ready(Thread(), part, 0);
            }),
            Misuse::NoEpoch);
}

/// All numbers of partitions on both sides, with messages and units of all sizes, in random orders:
/// a partition of the receiver is there when all messages that overlap it are, and no sooner.
TEST(DeviceFunctions, APartitionArrivesWithTheMessagesThatOverlapIt) {
  std::mt19937_64 random(printedSeed());
  for (uint64_t p = 1; p <= 12; ++p)
    for (uint64_t q = 1; q <= 12; ++q)
      for (uint64_t perMessage = 1; perMessage <= std::min<uint64_t>(p, 3); ++perMessage) {
        const uint64_t bytes = q * (1 + random() % 3);
        Pair pair(p, bytes, perMessage, 1 + random() % (2 * bytes), q);
        for (uint64_t epoch = 1; epoch <= 3; ++epoch) {
          pair.start(epoch);
          Part send(&pair.send), receive(&pair.receive);
          std::vector<uint64_t> order(p);
          std::iota(order.begin(), order.end(), 0);
          std::ranges::shuffle(order, random);
          std::vector<bool> isMarked(p);
          for (const uint64_t each : order) {
            ready(Thread(), send, each);
            isMarked[each] = true;
            for (uint64_t mine = 0; mine < q; ++mine) {
              const uint64_t size = pair.receive.partitionBytes;
              const uint64_t begin = mine * size, end = begin + size;
              const uint64_t first = begin / (perMessage * bytes) * perMessage;
              const uint64_t last =
                  std::min(p, ((end - 1) / (perMessage * bytes) + 1) * perMessage);
              const bool isThereByNow = std::all_of(isMarked.begin() + static_cast<long>(first),
                                                    isMarked.begin() + static_cast<long>(last),
                                                    [](bool is) { return is; });
              ASSERT_EQ(arrived(receive, mine), isThereByNow)
                  << p << " to " << q << ", " << perMessage << " a message, partition " << mine;
              if (isThereByNow) {
                ASSERT_TRUE(pair.isRight(epoch, begin, end));
              }
            }
          }
          ASSERT_EQ(pair.endSend(), Wait::Arrived);
          pair.endReceive();
        }
      }
}

/// Marks by several threads, the receiver starts at some time, and both ends wait.
TEST(DeviceFunctions, MarksCrossWithTheReceiversStart) {
  std::mt19937_64 random(printedSeed());
  for (int round = 0; round < 40; ++round) {
    const uint64_t p = 1 + random() % 24, perMessage = 1 + random() % std::min<uint64_t>(p, 4);
    Pair pair(p, 64, perMessage, 48, p, false);
    const uint64_t pauses = random() % 3;
    std::thread host([&] {
      for (uint64_t i = 0; i < pauses; ++i)
        std::this_thread::yield();
      pair.connect();
    });
    std::atomic<uint64_t> started{0}, ended{0};
    constexpr uint64_t kEpochs = 10, kMarkers = 3;
    std::vector<std::thread> markers;
    for (uint64_t m = 0; m < kMarkers; ++m)
      markers.emplace_back([&, m] {
        for (uint64_t epoch = 1; epoch <= kEpochs; ++epoch) {
          while (started.load() < epoch)
            std::this_thread::yield();
          Part part(&pair.send);
          for (uint64_t each = m; each < p; each += kMarkers)
            ready(Thread(), part, p - 1 - each);
          ended.fetch_add(1);
        }
      });
    std::thread receiver([&] {
      for (uint64_t epoch = 1; epoch <= kEpochs; ++epoch) {
        detail::start({&pair.receive});
        Part part(&pair.receive);
        ASSERT_EQ(wait(Thread(), part, p / 2, kForEver), Wait::Arrived);
        pair.endReceive();
        ASSERT_TRUE(pair.isRight(epoch, 0, pair.to.size())) << "epoch " << epoch;
      }
    });
    for (uint64_t epoch = 1; epoch <= kEpochs; ++epoch) {
      pair.fill(epoch);
      detail::start({&pair.send});
      started.store(epoch);
      ASSERT_EQ(pair.endSend(), Wait::Arrived);
      while (ended.load() < epoch * kMarkers)
        std::this_thread::yield();
    }
    for (std::thread &marker : markers)
      marker.join();
    receiver.join();
    host.join();
    EXPECT_EQ(pair.send.misuse, 0u);
    EXPECT_EQ(pair.table.scanners, 0u);
  }
}

/// Each of two ranks marks, waits for what it receives, and only then for its send: what its mark
/// had to leave, as the other had not started, goes while it waits.
TEST(DeviceFunctions, AWaitForAReceiveSendsMarkedPartitionsThatAreLeft) {
  Pair there(1, 64, 1, 64, 1, false), back(1, 64, 1, 64, 1, false);
  // The first rank sends there, and receives back.
  there.receive.sends = &back.table;
  back.receive.sends = &there.table;
  const auto rank = [](Pair &mine, Pair &theirs) {
    detail::start({&mine.send});
    detail::start({&theirs.receive});
    Part send(&mine.send), receive(&theirs.receive);
    ready(Thread(), send, 0);
    EXPECT_EQ(loadWord(&mine.send.units[0]), 0u); // nobody is connected
    return [&mine, &theirs] {
      Part again(&theirs.receive);
      EXPECT_EQ(wait(Thread(), again, 0, kForEver), Wait::Arrived);
      EXPECT_EQ(mine.endSend(), Wait::Arrived);
    };
  };
  const auto first = rank(there, back), second = rank(back, there);
  there.connect();
  back.connect();
  std::thread other(second);
  first();
  other.join();
}

/// A rank has two sends to another one, which starts the second one when it has received the first.
/// That was marked before the other had started, and only the second one's end is waited for.
TEST(DeviceFunctions, AWaitForASendSendsMarkedPartitionsOfOthersThatAreLeft) {
  constexpr uint64_t kLong = 5'000'000'000;
  Pair first(1, 64, 1, 64, 1), second(1, 64, 1, 64, 1);
  Sends none{};
  first.table.number = 2;
  first.table.of[1] = &second.send;
  second.send.sends = &first.table;
  first.receive.sends = second.receive.sends = &none;
  for (Pair *pair : {&first, &second}) {
    detail::start({&pair->send});
    Part send(&pair->send);
    ready(Thread(), send, 0);
  }
  std::thread other([&] {
    detail::start({&first.receive});
    Part receive(&first.receive);
    EXPECT_EQ(wait(Thread(), receive, 0, kLong), Wait::Arrived);
    detail::start({&second.receive});
  });
  Part send(&second.send);
  EXPECT_EQ(flush(Thread(), send, 2 * kLong), Wait::Arrived);
  other.join();
}

/// A loop that only asks, with what its rank's mark has left.
TEST(DeviceFunctions, ALoopThatOnlyAsksEnds) {
  Pair there(2, 16, 1, 16, 2, false);
  detail::start({&there.send});
  Part send(&there.send);
  readyRange(Thread(), send, 0, 1);
  there.connect();
  detail::start({&there.receive});
  Part receive(&there.receive);
  int looks = 0;
  while (!arrived(receive, 1) && ++looks < 1000) {
  }
  EXPECT_LT(looks, 1000);
}

TEST(DeviceFunctions, MisuseIsFoundAndStoresNothing) {
  const auto after = [](auto misuse) {
    auto pair = std::make_unique<Pair>(4, 16, 1, 16, 4);
    pair->start(1);
    Part send(&pair->send), receive(&pair->receive);
    misuse(*pair, send, receive);
    return pair;
  };
  EXPECT_EQ(misuseOf(after([](Pair &, Part &send, Part &) { ready(Thread(), send, 4); })->send),
            Misuse::NoPartition);
  EXPECT_EQ(misuseOf(after([](Pair &, Part &send, Part &) {
                       ready(Thread(), send, 2);
                       ready(Thread(), send, 2);
                     })->send),
            Misuse::Twice);
  EXPECT_EQ(misuseOf(after([](Pair &, Part &send, Part &) {
                       readyRange(Thread(), send, 0, ~uint64_t{0});
                     })->send),
            Misuse::NoPartition);
  EXPECT_EQ(
      misuseOf(after([](Pair &, Part &, Part &receive) { ready(Thread(), receive, 0); })->receive),
      Misuse::WrongSide);
  EXPECT_EQ(misuseOf(after([](Pair &, Part &send, Part &) { arrived(send, 0); })->send),
            Misuse::WrongSide);
  EXPECT_EQ(misuseOf(after([](Pair &pair, Part &, Part &) { detail::start({&pair.send}); })->send),
            Misuse::Active);
  const auto late = after([](Pair &pair, Part &send, Part &) {
    for (uint64_t p = 0; p < 4; ++p)
      ready(Thread(), send, p);
    EXPECT_EQ(pair.endSend(), Wait::Arrived);
    ready(Thread(), send, 1);
  });
  EXPECT_EQ(misuseOf(late->send), Misuse::NoEpoch);
  EXPECT_EQ(late->send.misuse & 0xffff, 1u) << "which partition";
}

TEST(DeviceFunctions, WaitsForWhatThereIsNotFail) {
  Pair pair(4, 16, 1, 16, 4);
  pair.start(1);
  Part send(&pair.send), receive(&pair.receive);
  EXPECT_EQ(wait(Thread(), send, 0, kForEver), Wait::Failed);
  EXPECT_EQ(misuseOf(pair.send), Misuse::WrongSide);
  EXPECT_EQ(flush(Thread(), receive, kForEver), Wait::Failed);
  EXPECT_EQ(misuseOf(pair.receive), Misuse::WrongSide);
  pair.receive.misuse = 0;
  EXPECT_EQ(wait(Thread(), receive, 4, kForEver), Wait::Failed);
  EXPECT_EQ(misuseOf(pair.receive), Misuse::NoPartition);
  EXPECT_EQ(wait(Thread(), receive, 0, kForEver), Wait::Failed) << "a request that is misused";
}

/// What is not marked yet is no reason to look through the sends again and again.
TEST(DeviceFunctions, OnlyWhatIsMarkedIsDeferred) {
  Pair pair(2, 16, 1, 16, 2, false);
  detail::start({&pair.send});
  Part send(&pair.send);
  ready(Thread(), send, 0);
  EXPECT_EQ(pair.table.deferred, 1u);
  pair.connect();
  detail::start({&pair.receive});
  Part receive(&pair.receive);
  EXPECT_FALSE(arrived(receive, 1));
  EXPECT_TRUE(arrived(receive, 0));
  EXPECT_EQ(pair.table.deferred, 0u);
}

/// A mark that was held up since the last epoch is refused, and takes no part in this one.
TEST(DeviceFunctions, TheLastOfSeveralMarksAPartition) {
  Collective collective;
  uint64_t counters[2] = {};
  for (uint64_t epoch = 1; epoch <= 3; ++epoch) {
    collective.state.epoch = epoch;
    Part part(&collective.state);
    // Three make partition 1, and one makes partition 2.
    for (uint64_t maker = 1; maker <= 3; ++maker) {
      readyCounted(Thread(), part, 1, &counters[0], 3);
      EXPECT_EQ(collective.marked[1], maker < 3 ? epoch - 1 : epoch);
    }
    readyCounted(Thread(), part, 2, &counters[1], 1);
    EXPECT_EQ(collective.marked[2], epoch);
    collective.state.done = epoch;
  }
  EXPECT_EQ(counters[0], 9u);
  EXPECT_EQ(collective.misuse(), Misuse::None);
}

/// Each of the makers stores a byte of the partition.
TEST(DeviceFunctions, StoresOfAllMakersArrive) {
  constexpr uint64_t kMakers = 4, kEpochs = 200;
  Pair pair(1, kMakers, 1, 64, 1);
  uint64_t counter = 0;
  for (uint64_t epoch = 1; epoch <= kEpochs; ++epoch) {
    start({&pair.send});
    start({&pair.receive});
    std::vector<std::thread> makers;
    for (uint64_t maker = 0; maker < kMakers; ++maker)
      makers.emplace_back([&, maker] {
        Part part(&pair.send);
        pair.from[maker] = Pair::byteOf(epoch, maker);
        readyCounted(Thread(), part, 0, &counter, kMakers);
      });
    Part part(&pair.receive);
    EXPECT_EQ(wait(Thread(), part, 0, kForEver), Wait::Arrived);
    EXPECT_TRUE(pair.isRight(epoch, 0, kMakers));
    for (std::thread &each : makers)
      each.join();
    EXPECT_EQ(pair.endSend(), Wait::Arrived);
    pair.endReceive();
  }
}

TEST(DeviceFunctions, AMarkOfTheLastEpochCompletesNothing) {
  Pair pair(2, 16, 2, 16, 1);
  pair.start(1);
  Part old(&pair.send);
  readyRange(Thread(), old, 0, 1);
  EXPECT_EQ(pair.endSend(), Wait::Arrived);
  pair.endReceive();
  pair.start(2);
  Part receive(&pair.receive);
  old.mark(0);
  Part send(&pair.send);
  ready(Thread(), send, 1);
  EXPECT_FALSE(arrived(receive, 0));
  ready(Thread(), send, 0);
  EXPECT_TRUE(arrived(receive, 0));
  EXPECT_TRUE(pair.isRight(2, 0, pair.to.size()));
}

TEST(DeviceFunctions, WaitsEndWithTimeFailureAndAFreedPeer) {
  Pair pair(1, 16, 1, 16, 1);
  pair.start(1);
  Part send(&pair.send), receive(&pair.receive);
  EXPECT_EQ(wait(Thread(), receive, 0, 1000), Wait::NotYet);
  EXPECT_EQ(flush(Thread(), send, 1000), Wait::NotYet);
  pair.receivePeer.isFreed = 1;
  EXPECT_EQ(wait(Thread(), receive, 0, kForEver), Wait::Failed);
  pair.receivePeer.isFreed = 0;
  pair.abort = 1;
  EXPECT_EQ(wait(Thread(), receive, 0, kForEver), Wait::Failed);
  EXPECT_EQ(pair.hasGivenUp, 1u);
  ready(Thread(), send, 0);
  EXPECT_FALSE(arrived(receive, 0)) << "nothing is stored after a failure";
}

/// A wait that lasts says so: else nobody finds out that the rank it waits for is gone.
TEST(DeviceFunctions, ALongWaitNamesItsPeer) {
  Pair pair(1, 16, 1, 16, 1);
  pair.receive.peerRank = 5;
  pair.start(1);
  Part receive(&pair.receive);
  EXPECT_EQ(wait(Thread(), receive, 0, 30'000'000), Wait::NotYet);
  EXPECT_EQ(pair.waitsFor, 6u);
  EXPECT_NE(pair.waitingSince, 0u);
}

TEST(DeviceFunctions, WithoutElementsAllMarksCountAndPartitionsAreThere) {
  Pair pair(3, 0, 1, 128, 2);
  pair.start(1);
  Part send(&pair.send), receive(&pair.receive);
  EXPECT_TRUE(arrived(receive, 0));
  EXPECT_EQ(flush(Thread(), send, 0), Wait::NotYet);
  readyRange(Thread(), send, 0, 2);
  EXPECT_EQ(flush(Thread(), send, 0), Wait::Arrived);
}

TEST(ArrivalWords, AreTakenAgainOnlyWhenTheyAreZero) {
  cuda::ArrivalWords words(1024);
  EXPECT_FALSE(words.canEverFit(129));
  const auto all = words.take(128);
  ASSERT_TRUE(all);
  words.giveBack(*all);
  EXPECT_FALSE(words.take(1));
  const auto used = words.takeUsed();
  ASSERT_TRUE(used);
  EXPECT_FALSE(words.take(1)) << "they are being cleared";
  words.cleared(*used);
  EXPECT_TRUE(words.take(128));
}

TEST(ArrivalWords, AreClearedByOneThreadAtATime) {
  cuda::ArrivalWords words(1024);
  words.giveBack(*words.take(128));
  // Both are about to clear what was given back. One is faster, and a receive takes the words.
  const auto ofFirst = words.takeUsed(), ofSecond = words.takeUsed();
  ASSERT_TRUE(ofFirst);
  EXPECT_FALSE(ofSecond) << "it would clear what the receive waits for";
  words.cleared(*ofFirst);
  EXPECT_TRUE(words.take(128));
  EXPECT_FALSE(words.take(1));
}

TEST(ArrivalWords, ThatCouldNotBeClearedAreToBeCleared) {
  cuda::ArrivalWords words(1024);
  words.giveBack(*words.take(128));
  words.giveBack(*words.takeUsed());
  EXPECT_FALSE(words.take(1));
  words.cleared(*words.takeUsed());
  EXPECT_TRUE(words.take(128));
}

/// Whatever is taken, and is being cleared, can be given back without memory.
TEST(ArrivalWords, HaveRoomToBeGivenBack) {
  cuda::ArrivalWords words(64 << 10);
  std::vector<cuda::ArrivalWords::Range> taken;
  std::mt19937_64 random(printedSeed());
  for (int i = 0; i < 2000; ++i) {
    if (random() % 3 != 0) {
      if (const auto range = words.take(1 + random() % 100))
        taken.push_back(*range);
    } else if (const auto range = words.takeUsed()) {
      if (random() % 2 == 0)
        words.cleared(*range);
      else
        taken.push_back(*range);
    }
    if (!taken.empty() && random() % 2 == 0) {
      words.giveBack(taken.back());
      taken.pop_back();
    }
    ASSERT_GE(words.roomForUsed(), taken.size());
  }
}

} // namespace
} // namespace occl::device::detail
