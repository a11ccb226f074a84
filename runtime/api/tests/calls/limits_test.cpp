// Each limit that occl.h tells of: what is just allowed, and what is one too much.
#include "plan/testing/example_plans.h"
#include "runtime/api/testing/harness.h"
#include "runtime/api/testing/steps.h"
#include "runtime/sched/policy/policy.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace occl::communicator::testing {
namespace {

using namespace plan::testing;
using namespace std::chrono_literals;

/// What making one rank of this configuration says, "" if it works.
std::string tryConfig(const occlConfig_t &config) {
  occlComm_t comm = nullptr;
  if (occlCommInitAll(&comm, 1, &config) != occlSuccess)
    return occlGetLastError();
  return occlCommDestroy(comm) == occlSuccess ? "" : lastError("occlCommDestroy");
}

template <class Member> occlConfig_t with(Member occlConfig_t::*member, Member value) {
  occlConfig_t config = OCCL_CONFIG_INITIALIZER;
  config.*member = value;
  return config;
}

TEST(Limits, OfAConfiguration) {
  using Config = occlConfig_t;
  EXPECT_EQ(tryConfig(with(&Config::workers, 256u)), "");
  EXPECT_EQ(tryConfig(with(&Config::workers, 257u)), "config->workers must be at most 256");
  EXPECT_EQ(tryConfig(with(&Config::spinMicroseconds, 20000u)), "");
  EXPECT_EQ(tryConfig(with(&Config::spinMicroseconds, 20001u)),
            "config->spinMicroseconds must be at most 20000");
  EXPECT_EQ(tryConfig(with(&Config::maxInFlight, 1u << 20)), "");
  EXPECT_EQ(tryConfig(with(&Config::maxInFlight, (1u << 20) + 1)),
            "config->maxInFlight must be at most 2^20");
  EXPECT_EQ(tryConfig(with(&Config::arenaBytes, (uint64_t{1} << 40) + 1)),
            "config->arenaBytes must be at most 2^40");
  EXPECT_EQ(tryConfig(with(&Config::heapBytes, (uint64_t{1} << 40) + 1)),
            "config->heapBytes must be at most 2^40");
  EXPECT_EQ(tryConfig(with(&Config::streams, 1024u)), "");
  EXPECT_EQ(tryConfig(with(&Config::streams, 1025u)), "config->streams must be at most 1024");
  const std::pair<uint32_t Config::*, uint32_t> choices[] = {
      {&Config::preemption, 2u},
      {&Config::strict, 2u},
      {&Config::orderPolicy, static_cast<uint32_t>(scheduler::kLastOrder)},
      {&Config::budgetPolicy, static_cast<uint32_t>(scheduler::kLastBudget)}};
  for (auto [member, most] : choices) {
    EXPECT_EQ(tryConfig(with(member, most)), "");
    EXPECT_NE(tryConfig(with(member, most + 1)), "");
  }
}

/// Whether memory is there for the largest is the system's to say, not ours to refuse.
TEST(Limits, OfMemory) {
  for (auto member : {&occlConfig_t::arenaBytes, &occlConfig_t::heapBytes}) {
    std::string text = tryConfig(with(member, uint64_t{1} << 40));
    EXPECT_EQ(text.find("must be"), std::string::npos) << text;
  }
}

TEST(Limits, OfRanks) {
  std::vector<occlComm_t> comms(1025, nullptr);
  EXPECT_EQ(occlCommInitAll(comms.data(), 1025, nullptr), occlInvalidArgument);
  EXPECT_NE(std::string(occlGetLastError()).find("1024"), std::string::npos) << occlGetLastError();
  EXPECT_EQ(occlCommInitRank(comms.data(), 1025, 0, "limits", nullptr), occlInvalidArgument);
  EXPECT_NE(std::string(occlGetLastError()).find("1024"), std::string::npos) << occlGetLastError();
  // As many as there can be: 1023 of them never come.
  occlConfig_t config = withTimeout(100);
  EXPECT_EQ(occlCommInitRank(comms.data(), 1024, 0, "limits", &config), occlTimeout)
      << occlGetLastError();
}

TEST(Limits, OfInvocationsOfOneCollective) {
  constexpr uint32_t kMost = 8;
  for (plan::Protocol protocol : {plan::Protocol::Simple, plan::Protocol::LL128}) {
    plan::Plan made = oneShotAllReduce(2);
    made.protocol = protocol;
    Job job(7, handleOf(std::move(made)), 16);
    Ranks ranks(2);
    std::vector<occlRequest_t> requests[2];
    for (uint32_t i = 0; i < kMost; ++i)
      ASSERT_EQ(job.submit(ranks[0], 0, &requests[0].emplace_back()), occlSuccess);
    occlRequest_t another = 0;
    EXPECT_EQ(job.submit(ranks[0], 0, &another), occlAgain);
    std::string text = occlGetLastError();
    EXPECT_NE(text.find("8 invocations of collective"), std::string::npos) << text;
    EXPECT_NE(text.find("(id 7), invocation 0 (in flight here)"), std::string::npos) << text;
    for (uint32_t i = 0; i < kMost; ++i)
      ASSERT_EQ(job.submit(ranks[1], 1, &requests[1].emplace_back()), occlSuccess);
    ranks.run([&](uint32_t r) {
      EXPECT_EQ(waitForAll(ranks[r], requests[r]), "");
      occlRequest_t next = 0;
      ASSERT_EQ(submitOnceFree(job, ranks[r], r, &next), occlSuccess);
      EXPECT_EQ(occlWait(ranks[r], next), occlSuccess);
      EXPECT_EQ(job.check(r), "");
    });
  }
}

TEST(Limits, OfInvocationsInFlight) {
  constexpr uint32_t kMost = 4;
  std::vector<Job> jobs;
  for (uint64_t id = 0; id <= kMost; ++id)
    jobs.emplace_back(id, handleOf(ringAllReduce(2)), 100);
  Ranks ranks(2, with(&occlConfig_t::maxInFlight, kMost));
  std::array<std::vector<occlRequest_t>, 2> requests; // of each rank
  requests.fill(std::vector<occlRequest_t>(kMost));
  for (uint32_t i = 0; i < kMost; ++i)
    ASSERT_EQ(jobs[i].submit(ranks[0], 0, &requests[0][i]), occlSuccess);
  occlRequest_t another = 0;
  EXPECT_EQ(jobs[kMost].submit(ranks[0], 0, &another), occlAgain);
  std::string text = occlGetLastError();
  EXPECT_NE(text.find("a request"), std::string::npos) << text;
  EXPECT_NE(text.find("(id 0), invocation 0 (in flight here)"), std::string::npos) << text;
  EXPECT_NE(text.find("(id 3), invocation 0 (in flight here)"), std::string::npos) << text;
  ranks.run([&](uint32_t r) {
    for (uint32_t i = 0; i < kMost && r == 1; ++i)
      ASSERT_EQ(jobs[i].submit(ranks[1], 1, &requests[1][i]), occlSuccess);
    EXPECT_EQ(waitForAll(ranks[r], requests[r]), "");
    occlRequest_t next = 0;
    ASSERT_EQ(submitOnceFree(jobs[kMost], ranks[r], r, &next), occlSuccess);
    EXPECT_EQ(occlWait(ranks[r], next), occlSuccess);
  });
}

TEST(Limits, OfCallbacksThatBlock) {
  constexpr uint32_t kMost = 64;
  struct Gate {
    std::atomic<uint32_t> begun{0};
    std::atomic<bool> isOpen{false};
  } gate;
  occlCallback_t callback = [](occlRequest_t, occlResult_t, void *user) {
    auto &entered = *static_cast<Gate *>(user);
    entered.begun.fetch_add(1);
    while (!entered.isOpen)
      std::this_thread::sleep_for(1ms);
  };
  std::vector<Job> jobs;
  PlanHandle handle = handleOf(oneShotAllReduce(1));
  for (uint64_t id = 0; id <= kMost; ++id)
    jobs.emplace_back(id, handle, 10);
  Ranks ranks(1);
  for (Job &job : jobs)
    ASSERT_EQ(job.submit(ranks[0], 0, nullptr, callback, &gate), occlSuccess);
  while (gate.begun < kMost)
    std::this_thread::sleep_for(1ms);
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(gate.begun, kMost) << "one more waits";
  gate.isOpen = true;
  while (gate.begun <= kMost)
    std::this_thread::sleep_for(1ms);
}

} // namespace
} // namespace occl::communicator::testing
