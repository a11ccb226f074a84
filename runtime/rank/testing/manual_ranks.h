// Three ranks in one thread, of which nothing runs but what a test lets run.
#pragma once

#include "plan/testing/example_plans.h"
#include "runtime/control/testing/thread_fabrics.h"
#include "runtime/rank/admission.h"
#include "runtime/sched/executor.h"
#include "runtime/sched/watchdog.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace occl::daemon::testing {

constexpr uint32_t kRanks = 3;
constexpr uint64_t kArenaBytes = 1 << 20;
constexpr uint64_t kCount = 64;

/// One rank with a device that has no worker.
class ManualRank {
public:
  ManualRank(std::unique_ptr<Fabric> fabric, std::shared_ptr<bootstrap::SharedBell> bell,
             bool preemption)
      : device(makeDevice(std::move(bell), preemption)), core(device, std::move(fabric), Options{}),
        admission(core), executor(*device),
        watchdog(
            core, [](uint64_t) { return insight::KnownCollective{}; }, [] {}) {
    device->board.attach(core.place);
  }
  ~ManualRank() { device->board.detach(core.place); }

  void add(uint64_t id, int32_t priority, const plan::Plan &plan) {
    CollectiveSpec spec;
    spec.plan = std::make_shared<plan::Plan>(plan);
    spec.count = kCount;
    options[id].priority = priority;
    std::ranges::fill(buffers[id], 1.0f);
    signature.count = kCount;
    Status status = admission.learnShape(signature, std::move(spec));
    ASSERT_TRUE(status.ok()) << status.message();
  }
  /// Without a deadline, unless one is given.
  void submit(uint64_t id, std::chrono::milliseconds timeout = {}) {
    float *buffer = buffers.at(id).data();
    options.at(id).timeout = timeout;
    auto request = admission.submit({.id = id,
                                     .input = buffer,
                                     .output = buffer,
                                     .signature = &signature,
                                     .options = &options.at(id)});
    ASSERT_TRUE(request.ok()) << request.status().message();
  }
  bool pass() { return executor.lookAtAll(); }
  /// A round of the watchdog, so long after the rank was made.
  void watch(std::chrono::milliseconds after) { watchdog.round(begin + after); }
  /// The rank destroys its communicator, as the others see it.
  void leave() { core.fabric->leave(); }
  Status failure() const { return core.fabric->failure(); }
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
  /// Of bytes in its pre-posted ring; 0: it has none.
  uint64_t ringBytes(uint64_t id) {
    uint64_t bytes = 0;
    admission.inspect(id, [&](const IdState &state) {
      bytes = state.ring.largest == 0 ? 0 : state.ring.bytes();
    });
    return bytes;
  }
  /// Ids that were called before the last one give back what they hold, as far as other ranks let
  /// them.
  void keepOne() { admission.setMostActive(1); }
  void tidy() { admission.tidy(); }
  std::map<uint64_t, std::array<float, kCount * kRanks>> buffers; // by id; ones at first

private:
  Signature signature;
  std::map<uint64_t, CallOptions> options; // by id
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
  Watchdog watchdog;
  const SteadyClock::time_point begin = SteadyClock::now();
};

class ManualRanks : public ::testing::Test {
protected:
  void make(bool preemption) {
    auto made = makeThreadFabrics(kRanks, kArenaBytes);
    ASSERT_TRUE(made.ok()) << made.status().message();
    for (uint32_t r = 0; r < kRanks; ++r)
      ranks.push_back(
          std::make_unique<ManualRank>(std::move(made->fabrics[r]), made->bells[r], preemption));
  }
  void add(uint64_t id, std::array<int32_t, kRanks> priorities,
           const plan::Plan &plan = plan::testing::ringAllReduce(kRanks)) {
    for (uint32_t r = 0; r < kRanks; ++r)
      ranks[r]->add(id, priorities[r], plan);
  }
  void submit(uint32_t rank, std::vector<uint64_t> ids) {
    for (uint64_t id : ids)
      ranks[rank]->submit(id);
  }
  /// As far as all come.
  void passAll() {
    for (int turn = 0; turn < 10000; ++turn)
      for (auto &rank : ranks)
        rank->pass();
  }
  /// Until all is complete.
  void finish() {
    passAll();
    for (auto &rank : ranks)
      EXPECT_FALSE(rank->hasOpen());
  }

  std::vector<std::unique_ptr<ManualRank>> ranks;
};

} // namespace occl::daemon::testing
