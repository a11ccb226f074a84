// What is admitted, what is refused, and what comes back.
#include "plan/testing/example_plans.h"
#include "runtime/api/capi/handles.h"
#include "runtime/api/testing/harness.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace occl::communicator::testing {
namespace {

using namespace plan::testing;

TEST(Admission, WrongCallsAreRefusedAndChangeNothing) {
  Ranks ranks(2);
  Job job(1, handleOf(ringAllReduce(2)), 1000);
  std::vector<float> data(3000);
  occlRequest_t request = 0;
  EXPECT_EQ(job.submitOn(ranks[0], data.data(), data.data(), nullptr), occlInvalidArgument)
      << "neither request nor callback";
  EXPECT_EQ(job.submitOn(ranks[0], nullptr, data.data(), &request), occlInvalidArgument);
  EXPECT_EQ(job.submitOn(ranks[0], data.data(), data.data() + 10, &request), occlInvalidArgument)
      << "they overlap";
  EXPECT_EQ(occlWait(ranks[0], 12345), occlInvalidArgument);
  EXPECT_EQ(occlTest(ranks[0], 0), occlInvalidArgument);
  EXPECT_EQ(occlStart(nullptr, nullptr, nullptr, nullptr, &request), occlInvalidArgument);
  Job other(2, handleOf(ringAllReduce(3)), 10);
  EXPECT_EQ(other.submitOn(ranks[0], data.data(), data.data(), &request), occlInvalidPlan)
      << "for another number of ranks";
  EXPECT_STREQ(occlCommGetLastError(ranks[0]), "") << "none of this makes the communicator fail";
}

// Offsets at the end of the output: no input chunk is an output chunk, so that in place is the same
// as out of place, also where the input happens to lie right behind the output.
TEST(Admission, BuffersThatLieOneBehindTheOtherAreTwo) {
  constexpr uint32_t kChunks = 3;
  for (bool isInPlaceOnly : {false, true}) {
    plan::Plan plan = shift(2, kChunks);
    plan.outOfPlace = !isInPlaceOnly;
    plan.inPlace = isInPlaceOnly;
    for (plan::RankPlan &rank : plan.ranks)
      rank.inPlaceOffset = kChunks;
    PlanHandle handle = handleOf(plan);
    for (uint64_t count : {1, 3, 1000}) {
      Ranks ranks(2);
      Job job(1, handle, count);
      std::vector<std::vector<float>> memory(2, std::vector<float>(2 * count, -1));
      for (uint64_t i = 0; i < count; ++i)
        memory[0][count + i] = static_cast<float>(i);
      ranks.run([&](uint32_t r) {
        float *output = memory[r].data();
        occlRequest_t request = 0;
        ASSERT_EQ(job.submitOn(ranks[r], output + count, output, &request), occlSuccess)
            << occlGetLastError();
        ASSERT_EQ(occlWait(ranks[r], request), occlSuccess);
        ASSERT_EQ(job.runOn(ranks[r], output + count, output), occlSuccess) << occlGetLastError();
      });
      for (uint64_t i = 0; i < count; ++i)
        ASSERT_EQ(memory[1][i], static_cast<float>(i)) << "count " << count;
      EXPECT_EQ(memory[0][0], -1) << "rank 0 has no output";
      if (count > 1) {
        occlRequest_t request = 0;
        float *output = memory[1].data();
        EXPECT_EQ(job.submitOn(ranks[1], output + count - 1, output, &request), occlInvalidArgument)
            << "they overlap";
      }
    }
  }
}

TEST(Admission, WrongConfigurationsAreRefused) {
  occlComm_t comm = nullptr;
  occlConfig_t config = OCCL_CONFIG_INITIALIZER;
  config.preemption = 3;
  EXPECT_EQ(occlCommInitAll(&comm, 1, &config), occlInvalidArgument);
  config = OCCL_CONFIG_INITIALIZER;
  config.size = 0;
  EXPECT_EQ(occlCommInitAll(&comm, 1, &config), occlInvalidArgument);
  EXPECT_EQ(occlCommInitAll(&comm, 0, nullptr), occlInvalidArgument);
  EXPECT_EQ(occlCommInitRank(&comm, 2, 2, "name", nullptr), occlInvalidArgument);
  EXPECT_EQ(occlCommInitRank(&comm, 2, 0, "bad/name", nullptr), occlInvalidArgument);
  EXPECT_EQ(comm, nullptr);
}

TEST(Admission, ATinyArenaPushesBackAndNamesTheHolders) {
  constexpr uint32_t kRanks = 2, kJobs = 16, kRounds = 10;
  occlConfig_t config = OCCL_CONFIG_INITIALIZER;
  config.arenaBytes = 64 << 10;
  Ranks ranks(kRanks, config);
  PlanHandle handle = handleOf(oneShotAllReduce(kRanks));
  std::vector<Job> jobs;
  for (uint32_t j = 0; j < kJobs; ++j)
    jobs.emplace_back(j, handle, 2000);
  std::atomic<uint32_t> pushedBack{0};
  ranks.run([&](uint32_t r) {
    for (uint32_t round = 0; round < kRounds; ++round) {
      std::vector<occlRequest_t> open;
      for (Job &job : jobs) {
        occlRequest_t request = 0;
        occlResult_t result;
        while ((result = job.submit(ranks[r], r, &request)) == occlAgain) {
          std::string text = occlGetLastError();
          EXPECT_NE(text.find("bytes of the arena"), std::string::npos) << text;
          EXPECT_NE(text.find("held by 'one_shot"), std::string::npos) << text;
          pushedBack.fetch_add(1);
          if (open.empty()) {
            std::this_thread::yield();
            continue;
          }
          ASSERT_EQ(occlWait(ranks[r], open.back()), occlSuccess);
          open.pop_back();
        }
        ASSERT_EQ(result, occlSuccess) << occlGetLastError();
        open.push_back(request);
      }
      for (occlRequest_t request : open)
        ASSERT_EQ(occlWait(ranks[r], request), occlSuccess) << occlGetLastError();
      for (Job &job : jobs)
        ASSERT_EQ(job.check(r), "");
    }
  });
  EXPECT_GT(pushedBack.load(), 0u);
}

TEST(Admission, ACallThatNeverFitsIsRefused) {
  occlConfig_t config = OCCL_CONFIG_INITIALIZER;
  config.arenaBytes = 4096;
  Ranks ranks(2, config);
  Job job(1, handleOf(oneShotAllReduce(2)), 100000);
  occlRequest_t request = 0;
  EXPECT_EQ(job.submit(ranks[0], 0, &request), occlInvalidArgument);
  EXPECT_NE(std::string(occlGetLastError()).find("arenaBytes"), std::string::npos);
  EXPECT_EQ(job.run(ranks[0], 0), occlInvalidArgument);
}

TEST(Admission, RequestsThatNobodyTakesPushBack) {
  occlConfig_t config = OCCL_CONFIG_INITIALIZER;
  config.maxInFlight = 4;
  Job job(1, handleOf(ringAllReduce(1)), 10);
  Ranks ranks(1, config); // goes first: some requests are still in flight at the end
  std::vector<occlRequest_t> requests(5);
  for (uint32_t i = 0; i < 4; ++i) {
    ASSERT_EQ(job.submit(ranks[0], 0, &requests[i]), occlSuccess) << occlGetLastError();
    while (occlTest(ranks[0], requests[i]) == occlInProgress)
      ;
    ASSERT_EQ(job.submit(ranks[0], 0, &requests[i]), occlSuccess) << occlGetLastError();
  }
  EXPECT_EQ(job.submit(ranks[0], 0, &requests[4]), occlAgain);
  EXPECT_EQ(occlWait(ranks[0], requests[2]), occlSuccess);
  EXPECT_EQ(job.submit(ranks[0], 0, &requests[4]), occlSuccess);
}

/// Submits the next invocation from the callback of the one before.
struct Chain {
  occlComm_t comm = nullptr;
  Job *job = nullptr;
  uint32_t rank = 0;
  std::atomic<uint32_t> left{0};
  std::atomic<bool> ended{false};

  static void next(occlRequest_t, occlResult_t result, void *user) {
    auto &chain = *static_cast<Chain *>(user);
    EXPECT_EQ(result, occlSuccess);
    if (chain.left.fetch_sub(1) == 1)
      chain.ended.store(true);
    else
      chain.submit();
  }
  void submit() {
    occlResult_t submitted = occlAgain;
    while (submitted == occlAgain)
      submitted = job->submit(comm, rank, nullptr, next, this);
    EXPECT_EQ(submitted, occlSuccess) << occlGetLastError();
  }
};

TEST(Admission, CallbacksMaySubmit) {
  constexpr uint32_t kRanks = 3, kLength = 200;
  Ranks ranks(kRanks);
  Job job(1, handleOf(oneShotAllReduce(kRanks)), 500);
  std::vector<Chain> chains(kRanks);
  ranks.run([&](uint32_t r) {
    chains[r].comm = ranks[r];
    chains[r].job = &job;
    chains[r].rank = r;
    chains[r].left = kLength;
    chains[r].submit();
    while (!chains[r].ended.load())
      std::this_thread::yield();
    EXPECT_EQ(job.check(r), "");
  });
}

TEST(Admission, CallbacksMayWait) {
  constexpr uint32_t kRanks = 2;
  Ranks ranks(kRanks);
  PlanHandle handle = handleOf(ringAllReduce(kRanks));
  Job outer(1, handle, 500), inner(2, handle, 700);
  struct Context {
    occlComm_t comm;
    occlRequest_t inner;
    std::atomic<bool> ended{false};
  };
  std::vector<Context> contexts(kRanks);
  ranks.run([&](uint32_t r) {
    contexts[r].comm = ranks[r];
    ASSERT_EQ(inner.submit(ranks[r], r, &contexts[r].inner), occlSuccess);
    occlCallback_t callback = [](occlRequest_t, occlResult_t, void *user) {
      auto &context = *static_cast<Context *>(user);
      EXPECT_EQ(occlWait(context.comm, context.inner), occlSuccess);
      context.ended.store(true);
    };
    ASSERT_EQ(outer.submit(ranks[r], r, nullptr, callback, &contexts[r]), occlSuccess);
    while (!contexts[r].ended.load())
      std::this_thread::yield();
    EXPECT_EQ(inner.check(r), "");
    EXPECT_EQ(outer.check(r), "");
  });
}

TEST(Admission, SequencesComeAndGoWhileOthersRun) {
  constexpr uint32_t kRanks = 3, kRounds = 60;
  Ranks ranks(kRanks);
  for (uint32_t r = 0; r < kRanks; ++r)
    ranks[r]->daemon->setMostActiveSequences(2);
  PlanHandle handle = handleOf(twoShotAllReduce(kRanks));
  Job steady(1, handle, 30000);
  std::vector<Job> visitors;
  for (uint32_t round = 0; round < kRounds; ++round) // some ids are used again with another count
    visitors.emplace_back(100 + round % 20, handle, 100 + round);
  ranks.run([&](uint32_t r) {
    for (Job &visitor : visitors) {
      occlRequest_t first = 0, second = 0;
      ASSERT_EQ(steady.submit(ranks[r], r, &first), occlSuccess);
      ASSERT_EQ(visitor.submit(ranks[r], r, &second), occlSuccess) << occlGetLastError();
      ASSERT_EQ(occlWait(ranks[r], second), occlSuccess) << occlGetLastError();
      ASSERT_EQ(visitor.check(r), "");
      ASSERT_EQ(occlWait(ranks[r], first), occlSuccess);
      ASSERT_EQ(steady.check(r), "");
    }
  });
}

TEST(Admission, ManySequences) {
  constexpr uint32_t kRanks = 2, kCollectives = 2000;
  Ranks ranks(kRanks);
  PlanHandle handle = handleOf(oneShotAllReduce(kRanks));
  std::vector<Job> jobs;
  for (uint32_t j = 0; j < kCollectives; ++j)
    jobs.emplace_back(j * 7919ull, handle, 1 + j % 50);
  ranks.run([&](uint32_t r) {
    for (uint32_t i = 0; i < kCollectives; ++i) {
      Job &job = jobs[i];
      occlRequest_t request = 0;
      ASSERT_EQ(job.submit(ranks[r], r, &request), occlSuccess);
      ASSERT_EQ(occlWait(ranks[r], request), occlSuccess);
      ASSERT_EQ(job.check(r), "");
    }
  });
}

TEST(Admission, InPlaceAndItsLimits) {
  constexpr uint32_t kRanks = 3;
  Ranks ranks(kRanks);
  Job job(1, handleOf(ringAllReduce(kRanks)), 999, DataType::Int32);
  ranks.run([&](uint32_t r) {
    const char *input = static_cast<const char *>(job.input(r));
    std::copy(input, input + 999 * sizeof(int32_t), static_cast<char *>(job.output(r)));
    occlRequest_t request = 0;
    ASSERT_EQ(job.submitOn(ranks[r], job.output(r), job.output(r), &request), occlSuccess)
        << occlGetLastError();
    EXPECT_EQ(occlWait(ranks[r], request), occlSuccess);
    EXPECT_EQ(job.check(r), "");
  });
}

} // namespace
} // namespace occl::communicator::testing
