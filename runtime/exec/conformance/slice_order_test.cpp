// docs/plan.md, Slices: of each slice an instruction stores in all its local destinations before
// the receivers of an ordered connection can see it. Ranks are threads; the last of a chain looks
// at what the one before it holds while slices arrive.
#include "plan/testing/example_plans.h"
#include "runtime/exec/conformance/simulation.h"
#include "runtime/exec/host/target_host.h"
#include "runtime/exec/step/step.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <thread>

namespace occl::interpreter::conformance {
namespace {

constexpr uint32_t kRanks = 3;
constexpr uint64_t kElements = 40'000;

void runToItsEnd(Simulation &simulation, uint32_t rank) {
  HostTarget target;
  while (simulation.run(rank, 0, target, 1).status != StepStatus::Finished)
    std::this_thread::yield();
}

class SliceOrder : public testing::TestWithParam<bool> {
protected:
  void SetUp() override {
    plan::Plan plan = plan::testing::chainBroadcast(kRanks, 1);
    for (plan::Connection &connection : plan.connections)
      connection.isOrdered = true;
    const bool hostSteps = GetParam();
    auto made = Simulation::make(
        plan,
        {.count = kElements, .type = DataType::Int32, .tiles = {8000, 8}, .hostSteps = hostSteps});
    ASSERT_TRUE(made.ok()) << made.status().message();
    simulation = std::move(*made);
    ASSERT_EQ(simulation->binding(1).steps(0) != nullptr, hostSteps);
  }

  const int32_t *output(uint32_t rank) const {
    return reinterpret_cast<const int32_t *>(simulation->output(rank));
  }
  /// Each element differs from what is there before.
  void begin(int32_t round) {
    simulation->restart();
    auto *input = reinterpret_cast<int32_t *>(simulation->input(0));
    for (uint64_t i = 0; i < kElements; ++i)
      input[i] = round * 100'000 + static_cast<int32_t>(i) + 1;
    for (uint32_t rank : {1u, 2u})
      std::memset(simulation->output(rank), 0, kElements * sizeof(int32_t));
    simulation->announceAll();
  }

  std::unique_ptr<Simulation> simulation;
};

TEST_P(SliceOrder, ArrivedDataAreInTheSendersBufferToo) {
  for (int32_t round = 0; round < 20; ++round) {
    begin(round);
    std::thread first([&] { runToItsEnd(*simulation, 0); });
    std::thread second([&] { runToItsEnd(*simulation, 1); });
    HostTarget target;
    uint64_t seen = 0, turns = 0;
    for (bool isOver = false; !isOver && !HasFailure();) {
      isOver = simulation->run(2, 0, target, 1).status == StepStatus::Finished;
      const uint64_t before = seen;
      while (seen < kElements && output(2)[seen] != 0)
        ++seen;
      turns += seen > before;
      EXPECT_EQ(std::memcmp(output(1) + before, output(2) + before, (seen - before) * 4), 0)
          << "elements " << before << " to " << seen << " of round " << round;
    }
    first.join();
    second.join();
    EXPECT_EQ(seen, kElements);
    EXPECT_GT(turns, kElements * 4 / 8000); // slices, not whole messages, were looked at
  }
}

INSTANTIATE_TEST_SUITE_P(Drivers, SliceOrder, testing::Bool(),
                         [](const auto &info) { return info.param ? "OfHosts" : "OfDevices"; });

} // namespace
} // namespace occl::interpreter::conformance
