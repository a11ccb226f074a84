// Partitioned collectives under made-up schedules: marks and arrivals alone, and whole requests of
// two ranks, epoch after epoch, with whoever sleeps while something is marked.
#include "runtime/api/occl_partitioned.h"
#include "runtime/partitioned/collective_parts.h"
#include "test/explore/communicators.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace occl::explore {
namespace {

using partitioned::CollectiveParts;
using plan::OperandKind;

void succeed(occlResult_t result, const char *what) { require(result == occlSuccess, what); }

void exploreAll(const std::function<void()> &body) {
  Settings settings;
  settings.strategy = Settings::Strategy::Exhaustive;
  settings.preemptions = 2;
  settings.schedules = 10000000;
  settings.racesEvery = 1; // there are few
  const auto outcome = explore(settings, body);
  EXPECT_EQ(outcome.defect, "");
  EXPECT_TRUE(outcome.all);
}

/// Two elements in and out, a partition each, of which each is stored to once, by a step each.
struct Two {
  Two() {
    for (uint32_t i = 0; i < 2; ++i) {
      instructions[i].elements = 1;
      instructions[i].firstOperand = i;
      instructions[i].numDestinations = 1;
      operands[i].place = static_cast<interpreter::Place>(OperandKind::Output);
      operands[i].offset = i * sizeof(uint64_t);
    }
    block.numInstructions = 2;
    program.blocks = &block;
    program.numBlocks = 1;
    program.instructions = instructions.data();
    program.operands = operands.data();
    program.elementBytes = sizeof(uint64_t);
    partitioned::CollectiveBuffers buffers;
    buffers.input = buffers.output = {2, 2};
    buffers.type = DataType::Uint64;
    buffers.data = reinterpret_cast<const char *>(input.data());
    parts = std::make_unique<CollectiveParts>(buffers, program, bell);
  }
  void mark(uint64_t p, uint64_t epoch) {
    input[p] = 10 * epoch + p;
    require(parts->mark(p, epoch), "refused");
    parts->count(1);
  }
  void awaitInput(uint64_t p) const {
    while (parts->missing(OperandKind::Input, {p, p + 1}))
      yieldProcessor();
  }

  std::array<interpreter::BoundInstruction, 2> instructions;
  std::array<interpreter::BoundOperand, 2> operands;
  interpreter::BoundBlock block;
  interpreter::Program program;
  Doorbell bell;
  std::array<uint64_t, 2> input{}, output{};
  std::unique_ptr<CollectiveParts> parts;
};

/// A step that may access a partition sees what was stored to it, and who asks what steps stored.
TEST(CollectiveParts, DataComeWithMarksAndArrivals) {
  exploreAll([] {
    Two two;
    for (uint64_t epoch = 1; epoch <= 2; ++epoch) {
      two.parts->begin(epoch);
      Thread executor([&] {
        for (uint64_t p : {1, 0}) {
          two.awaitInput(p);
          two.output[p] = two.input[p];
          two.parts->stored({p, p + 1});
        }
      });
      two.mark(0, epoch);
      two.mark(1, epoch);
      for (uint64_t q : {1, 0}) {
        while (!two.parts->hasArrived(q, epoch))
          yieldProcessor();
        require(two.output[q] == 10 * epoch + q, "wrong data");
      }
      executor.join();
    }
  });
}

/// Of a copy: each partition is made once, and whoever may access it finds it made. A second one
/// would race with who reads the first.
TEST(CollectiveParts, CopiesAreMadeOnce) {
  exploreAll([] {
    Two two;
    std::array<uint64_t, 2> copy{};
    const uint64_t factor = 3;
    two.parts->begin(1);
    two.parts->readCopy(reinterpret_cast<char *>(copy.data()), {&factor, 1});
    const auto execute = [&] {
      two.awaitInput(0);
      require(copy[0] == 30, "not copied");
    };
    two.mark(0, 1);
    Thread other(execute);
    execute();
    other.join();
  });
}

/// With the last mark the epoch is over, and everything may be gone: no mark touches it later.
TEST(CollectiveParts, TheLastMarkEndsTheEpoch) {
  exploreAll([] {
    Two two;
    two.parts->begin(1);
    Thread other([&] { two.mark(1, 1); });
    two.mark(0, 1);
    while (!two.parts->areAllMarked(1))
      yieldProcessor();
    require(two.input[1] == 11, "not visible");
    other.join();
    two.parts->begin(2);
    require(!two.parts->areAllMarked(2) && two.parts->missing(OperandKind::Input, {0, 1}),
            "marked in the next");
  });
}

/// A rank's request to add up some numbers, by a plan of its own.
class Sum {
public:
  Sum(occlComm_t comm, const PlanHandle &plan, int64_t sent, int64_t received, uint64_t rounds,
      const int32_t *factor = nullptr)
      : sent(sent), input(kCount, -1), output(kCount, -1) {
    occlCall_t call = OCCL_CALL_INITIALIZER;
    call.plan = plan.get();
    call.sendBuffer = input.data();
    call.recvBuffer = output.data();
    call.count = kCount;
    call.dataType = occlInt32;
    call.scalar = factor;
    occlPartConfig_t config = OCCL_PART_CONFIG_INITIALIZER;
    config.rounds = rounds;
    succeed(occlPcollInit(comm, &call, sent, received, &config, &part), "init");
  }
  void start() const { succeed(occlPstart(part), "start"); }
  void mark(int64_t p, int32_t value) {
    const int64_t each = (kCount + sent - 1) / sent;
    for (int64_t i = p * each; i < std::min<int64_t>(kCount, (p + 1) * each); ++i)
      input[static_cast<size_t>(i)] = value;
    succeed(occlPready(part, p), "ready");
  }
  void markAll(int32_t value) {
    for (int64_t p = sent; p-- > 0;)
      mark(p, value);
  }
  bool hasArrived(int64_t q) const {
    int32_t arrived = 0;
    succeed(occlParrived(part, q, &arrived), "arrived");
    return arrived != 0;
  }
  void wait(int32_t expected) {
    succeed(occlPwait(part), "wait");
    for (int32_t value : output)
      require(value == expected, "wrong sum");
    std::fill(input.begin(), input.end(), -1); // they are the program's again
    std::fill(output.begin(), output.end(), -1);
  }
  void free() const { succeed(occlPfree(part), "free"); }

  static constexpr int64_t kCount = 128; // four chunks of the smallest size
  const int64_t sent;
  std::vector<int32_t> input, output;
  occlPart_t part = nullptr;
};

class PartitionedCollectives : public Daemon {
protected:
  void exploreBoth(uint64_t schedules, uint32_t workers,
                   const std::function<void(occlComm_t, uint32_t)> &body) {
    exploreRanks(schedules, withWorkers(workers), {},
                 [&](Ranks &ranks, uint32_t r) { body(ranks[r], r); });
  }
};

TEST_F(PartitionedCollectives, EpochAfterEpoch) {
  for (uint64_t rounds : {1, 2})
    exploreBoth(100, 1, [&](occlComm_t comm, uint32_t r) {
      Sum sum(comm, ring, 2 + r, 3 - r, rounds);
      for (int32_t epoch = 1; epoch <= 3; ++epoch) {
        sum.start();
        sum.markAll(epoch);
        sum.wait(2 * epoch);
      }
      sum.free();
    });
}

/// By several threads, of which any may be the last, while one waits already, which starts the next
/// epoch, and frees, as soon as it is told that this one has ended.
TEST_F(PartitionedCollectives, ThreadsThatMark) {
  exploreBoth(100, 1, [&](occlComm_t comm, uint32_t r) {
    Sum sum(comm, ring, 2, 1, 2);
    std::vector<Thread> others;
    for (int32_t epoch = 1; epoch <= 2; ++epoch) {
      sum.start();
      others.emplace_back([&, epoch] { sum.mark(static_cast<int64_t>(r), epoch); });
      sum.mark(1 - r, epoch);
      sum.wait(2 * epoch);
    }
    sum.free();
    for (Thread &other : others)
      other.join();
  });
}

/// A partition that a list has twice is refused by the request, which lives as long as that takes.
TEST_F(PartitionedCollectives, AListThatHasOneTwice) {
  exploreBoth(100, 1, [&](occlComm_t comm, uint32_t) {
    Sum sum(comm, ring, 1, 1, 1);
    sum.start();
    std::fill(sum.input.begin(), sum.input.end(), 1);
    Thread other([part = sum.part] {
      constexpr int64_t kTwice[] = {0, 0};
      require(occlPreadyList(part, 2, kTwice) == occlInvalidArgument, "not refused");
    });
    sum.wait(2);
    sum.free();
    other.join();
  });
}

/// Who waits sleeps, as all others do, and is woken by the other thread's mark.
TEST_F(PartitionedCollectives, AMarkWakesWhoWaits) {
  exploreWhoSleeps({}, [&](occlComm_t comm, uint32_t r) {
    Sum sum(comm, ring, 1, 1, 1);
    sum.start();
    Thread other([&] {
      sleepFor(std::chrono::milliseconds(100 + 50 * r));
      sum.mark(0, 3);
    });
    sum.wait(6);
    other.join();
  });
}

/// A scaled input is copied by whichever thread block needs it first.
TEST_F(PartitionedCollectives, CopiesOfTheInput) {
  exploreBoth(100, 2, [&](occlComm_t comm, uint32_t) {
    const int32_t factor = 3;
    Sum sum(comm, twoShot, 2, 2, 1, &factor);
    for (int32_t epoch = 1; epoch <= 2; ++epoch) {
      sum.start();
      sum.markAll(epoch);
      sum.wait(6 * epoch);
    }
    sum.free();
  });
}

/// What is computed from what has arrived.
TEST_F(PartitionedCollectives, RoundAfterRound) {
  exploreBoth(100, 1, [&](occlComm_t comm, uint32_t) {
    Sum sum(comm, ring, 2, 2, 2);
    sum.start();
    sum.mark(1, 4);
    while (!sum.hasArrived(1))
      yieldProcessor();
    require(sum.output.back() == 8, "wrong data has arrived");
    sum.mark(0, sum.output.back() / 2);
    sum.wait(8);
    sum.free();
  });
}

/// Two, started and marked in opposite orders.
TEST_F(PartitionedCollectives, SeveralInAnyOrder) {
  exploreBoth(100, 2, [&](occlComm_t comm, uint32_t r) {
    Sum first(comm, ring, 2, 1, 2), second(comm, twoShot, 1, 2, 1);
    Sum &mine = r == 0 ? first : second, &others = r == 0 ? second : first;
    mine.start();
    others.start();
    mine.markAll(1);
    others.markAll(1);
    others.wait(2);
    mine.wait(2);
    first.free();
    second.free();
  });
}

/// Rank 0 starts its epoch when calls have filled its arena, which rank 1 begins later: so does it.
TEST_F(PartitionedCollectives, BeginsWhenThereIsRoom) {
  constexpr uint32_t kCalls = 6;
  std::vector<Job> jobs;
  for (uint32_t j = 0; j < 3; ++j)
    jobs.emplace_back(j, ring, 3000, DataType::Int32);
  exploreRanks(100, withWorkers(1), jobs, [&](Ranks &ranks, uint32_t r) {
    Sum sum(ranks[r], ring, 2, 1, 1);
    std::vector<occlRequest_t> requests;
    occlRequest_t request = 0;
    while (r == 0 && requests.size() < kCalls &&
           jobs[requests.size() % 3].submit(ranks[r], r, &request) == occlSuccess)
      requests.push_back(request);
    sum.start();
    sum.markAll(1);
    while (requests.size() < kCalls)
      requests.push_back(submitWhenFree(jobs[requests.size() % 3], ranks[r], r));
    sum.wait(2);
    for (occlRequest_t waited : requests)
      succeed(occlWait(ranks[r], waited), "wait");
    sum.free();
  });
}

/// Two, started in opposite orders when calls are where rank 0's epochs are to be; and again, while
/// the other rank may not have ended the last epoch.
TEST_F(PartitionedCollectives, EachBeginsInItsHome) {
  constexpr uint32_t kCalls = 4;
  std::vector<Job> jobs;
  for (uint32_t j = 0; j < kCalls; ++j)
    jobs.emplace_back(j, ring, 3000, DataType::Int32);
  exploreRanks(100, withWorkers(1), jobs, [&](Ranks &ranks, uint32_t r) {
    Sum first(ranks[r], ring, 2, 1, 1), second(ranks[r], twoShot, 1, 2, 1);
    Sum &mine = r == 0 ? first : second, &others = r == 0 ? second : first;
    std::vector<occlRequest_t> requests;
    occlRequest_t request = 0;
    while (r == 0 && requests.size() < kCalls &&
           jobs[requests.size()].submit(ranks[r], r, &request) == occlSuccess)
      requests.push_back(request);
    for (int32_t epoch = 1; epoch <= 2; ++epoch) {
      mine.start();
      others.start();
      others.markAll(epoch);
      mine.markAll(epoch);
      while (requests.size() < kCalls)
        requests.push_back(submitWhenFree(jobs[requests.size()], ranks[r], r));
      mine.wait(2 * epoch);
      others.wait(2 * epoch);
    }
    for (occlRequest_t waited : requests)
      succeed(occlWait(ranks[r], waited), "wait");
    first.free();
    second.free();
  });
}

/// Before, while and after they are marked: each epoch ends once, with its data or without.
TEST_F(PartitionedCollectives, Abort) {
  expectNoDefect(150, [&] {
    Ranks ranks(kRanks, withWorkers(1));
    Thread aborter([&] { succeed(occlCommAbort(ranks[1]), "abort"); });
    runRanks([&](uint32_t r) {
      std::vector<int32_t> input(4, 7), output(4, -1);
      occlCall_t call = OCCL_CALL_INITIALIZER;
      call.plan = ring.get();
      call.sendBuffer = input.data();
      call.recvBuffer = output.data();
      call.count = 4;
      call.dataType = occlInt32;
      occlPart_t part = nullptr;
      const auto eitherWay = [](occlResult_t result) {
        require(result == occlSuccess || result == occlAborted, "neither");
        return result == occlSuccess;
      };
      if (!eitherWay(occlPcollInit(ranks[r], &call, 2, 2, nullptr, &part)))
        return;
      const bool hasBegun = eitherWay(occlPstart(part));
      for (int64_t p = 0; hasBegun && p < 2; ++p)
        eitherWay(occlPready(part, p));
      if (hasBegun && eitherWay(occlPwait(part)))
        require(output[0] == 14 && output[3] == 14, "wrong sum");
      input.assign(4, -3); // it is the program's again
      output.assign(4, -3);
      succeed(occlPfree(part), "free");
    });
    aborter.join();
  });
}

} // namespace
} // namespace occl::explore
