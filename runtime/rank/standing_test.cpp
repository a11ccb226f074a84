// An invocation's place in the queue changes when all ranks have announced it. Nothing runs here
// but what a test lets run.
#include "plan/testing/example_plans.h"
#include "runtime/control/shm/shared_bell.h"
#include "runtime/rank/admission.h"
#include "runtime/sched/executor.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace occl::daemon {
namespace {

constexpr uint32_t kRanks = 3;
constexpr uint64_t kArenaBytes = 1 << 20;
constexpr uint64_t kCount = 64;

/// One rank with a device that has no worker.
class Rank {
public:
  Rank(std::unique_ptr<Fabric> fabric, std::shared_ptr<bootstrap::SharedBell> bell, bool preemption)
      : device(makeDevice(std::move(bell), preemption)), core(device, std::move(fabric), Options{}),
        admission(core), executor(*device) {
    device->board.attach(core.place);
  }
  ~Rank() { device->board.detach(core.place); }

  void add(uint64_t id, int32_t priority, const plan::Plan &plan) {
    CollectiveSpec spec;
    spec.plan = std::make_shared<plan::Plan>(plan);
    spec.count = kCount;
    options.at(id).priority = priority;
    signature.count = kCount;
    Status status = admission.learnShape(signature, std::move(spec));
    ASSERT_TRUE(status.ok()) << status.message();
  }
  void submit(uint64_t id) {
    float *buffer = buffers.at(id).data();
    auto request = admission.submit({.id = id,
                                     .input = buffer,
                                     .output = buffer,
                                     .signature = &signature,
                                     .options = &options.at(id)});
    ASSERT_TRUE(request.ok()) << request.status().message();
  }
  bool pass() { return executor.lookAtAll(); }
  /// Ids in the order of the queue, each once.
  std::vector<uint64_t> order() {
    std::vector<uint64_t> ids;
    device->board.forEachTask(core.place, [&](const BlockTask &task) {
      if (ids.empty() || ids.back() != task.invocation->id->id)
        ids.push_back(task.invocation->id->id);
    });
    return ids;
  }
  bool hasOpen() const { return core.hasOpen(); }
  /// Ids of which no task has been looked at.
  std::vector<uint64_t> unseen() {
    std::vector<uint64_t> ids;
    device->board.forEachTask(core.place, [&](const BlockTask &task) {
      if (task.obstacle.reason == interpreter::BlockReason::None)
        ids.push_back(task.invocation->id->id);
    });
    return ids;
  }
  std::array<std::array<float, kCount * kRanks>, 8> buffers{};

private:
  Signature signature;
  std::array<CallOptions, 8> options{};
  static std::shared_ptr<Device> makeDevice(std::shared_ptr<bootstrap::SharedBell> bell,
                                            bool preemption) {
    DeviceOptions options;
    options.workers = 0;
    options.preemption = preemption;
    return *Device::start(options, std::move(bell));
  }

  std::shared_ptr<Device> device;
  Core core;
  Admission admission;
  Executor executor;
};

class StandingTest : public testing::Test {
protected:
  void make(bool preemption) {
    std::vector<std::shared_ptr<bootstrap::SharedBell>> bells;
    for (uint32_t r = 0; r < kRanks; ++r)
      bells.push_back(*bootstrap::SharedBell::makePrivate());
    auto groups = bootstrap::formThreadGroup(bells, transport::Segment::bytesFor(kArenaBytes));
    std::vector<std::unique_ptr<Fabric>> fabrics;
    for (auto &group : *groups) {
      fabrics.push_back(std::make_unique<Fabric>(std::move(group)));
      ASSERT_TRUE(fabrics.back()->format(1).ok());
    }
    for (auto &fabric : fabrics)
      ASSERT_TRUE(fabric->connect().ok());
    for (uint32_t r = 0; r < kRanks; ++r)
      ranks.push_back(std::make_unique<Rank>(std::move(fabrics[r]), bells[r], preemption));
  }
  void add(uint64_t id, std::array<int32_t, kRanks> priorities) {
    plan::Plan plan = plan::testing::ringAllReduce(kRanks);
    for (uint32_t r = 0; r < kRanks; ++r)
      ranks[r]->add(id, priorities[r], plan);
  }
  void submit(uint32_t rank, std::vector<uint64_t> ids) {
    for (uint64_t id : ids)
      ranks[rank]->submit(id);
  }
  /// Until all is complete.
  void finish() {
    for (int turn = 0; turn < 10000; ++turn)
      for (auto &rank : ranks)
        rank->pass();
    for (auto &rank : ranks)
      EXPECT_FALSE(rank->hasOpen());
  }

  std::vector<std::unique_ptr<Rank>> ranks;
};

using Ids = std::vector<uint64_t>;

TEST_F(StandingTest, AHighPriorityOnOneRankRaisesTheInvocationOnAll) {
  make(true);
  add(1, {0, 0, 0});
  add(2, {0, 0, 9});
  for (uint32_t r = 0; r < 2; ++r)
    submit(r, {1, 2});
  ranks[0]->pass();
  EXPECT_EQ(ranks[0]->order(), (Ids{1, 2})) << "rank 2 has announced nothing";
  submit(2, {1, 2});
  for (uint32_t r = 0; r < kRanks; ++r) {
    ranks[r]->pass();
    EXPECT_EQ(ranks[r]->order(), (Ids{2, 1})) << "rank " << r;
  }
  finish();
}

TEST_F(StandingTest, APriorityIsInheritedFromTheFirstAnnouncement) {
  make(true);
  add(1, {3, 0, 0});
  add(2, {0, 0, 9});
  add(3, {0, 0, 5});
  submit(0, {1, 2, 3});
  submit(2, {3});
  for (uint32_t i = 0; i < 2 * kRanks; ++i)
    ranks[0]->pass();
  EXPECT_EQ(ranks[0]->order(), (Ids{3, 1, 2})) << "rank 1 has announced nothing, rank 2 has one";
  submit(2, {2});
  for (uint32_t i = 0; i < 2 * kRanks; ++i)
    ranks[0]->pass();
  EXPECT_EQ(ranks[0]->order(), (Ids{2, 3, 1}));
  submit(1, {1, 2, 3});
  submit(2, {1});
  finish();
}

TEST_F(StandingTest, WhatAllHaveAnnouncedGoesFirstAsTheLowestRankSubmittedIt) {
  make(true);
  for (uint64_t id : {1, 2, 3, 4})
    add(id, {0, 0, 0});
  submit(0, {3, 1, 4, 2});
  submit(1, {4, 2, 1, 3});
  submit(2, {2, 1, 3});
  for (uint32_t r = 0; r < kRanks; ++r)
    ranks[r]->pass();
  EXPECT_EQ(ranks[0]->order(), (Ids{3, 1, 2, 4}));
  EXPECT_EQ(ranks[1]->order(), (Ids{3, 1, 2, 4}));
  EXPECT_EQ(ranks[2]->order(), (Ids{3, 1, 2}));
  submit(2, {4});
  finish();
}

/// What is submitted in the middle of a pass has no turn in it, or moves others.
TEST_F(StandingTest, ALookAtAllIsAtEverythingWhereverThePassStands) {
  make(true);
  add(1, {0, 0, 0});
  add(2, {0, 0, 0});
  add(3, {9, 0, 0});
  add(4, {9, 0, 0});
  add(5, {0, 0, 0});
  submit(0, {1});
  ranks[0]->pass();
  submit(0, {2, 3, 4, 5});
  ranks[0]->pass();
  EXPECT_EQ(ranks[0]->unseen(), Ids{});
  for (uint32_t r = 1; r < kRanks; ++r)
    submit(r, {5, 4, 3, 2, 1});
  finish();
}

TEST_F(StandingTest, WithoutPreemptionAnExecutorKeepsToWhatItHasBegun) {
  make(false);
  add(1, {0, 0, 9}); // so that rank 2 begins with it, too
  add(2, {0, 0, 0});
  submit(0, {1, 2});
  submit(1, {1, 2});
  submit(2, {2}); // only this is announced by all
  ranks[0]->pass();
  EXPECT_EQ(ranks[0]->order(), (Ids{1, 2}));
  submit(2, {1});
  finish();
}

} // namespace
} // namespace occl::daemon
