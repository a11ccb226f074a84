#include "runtime/invocation/plan_scaling.h"

#include "plan/testing/example_plans.h"
#include "runtime/plan_library/plan_library.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace occl::daemon {
namespace {

using plan_library::Kind;
using plan_library::PlanClass;

constexpr PlanClass kDevices[] = {PlanClass::DeviceRegistered, PlanClass::DeviceOrdinary,
                                  PlanClass::ResidentRegistered, PlanClass::ResidentOrdinary};
constexpr uint32_t kMostRanks = 8;

/// body(plan, kind, name) of all that the library has for devices at these sizes.
template <class Body> void forPlansOfDevices(const Body &body) {
  for (PlanClass where : kDevices)
    for (uint32_t kind = 0; kind < plan_library::kNumKinds; ++kind)
      for (uint32_t ranks = 1; ranks <= kMostRanks; ++ranks)
        for (uint64_t bytes : {16ull, 40'000ull, 500'000ull, 8ull << 20, 1ull << 30}) {
          auto chosen = plan_library::PlanLibrary::ofProcess().choose(
              {static_cast<Kind>(kind), ranks, bytes, 0, where});
          ASSERT_TRUE(chosen.ok()) << chosen.status().message();
          body(*chosen->plan, static_cast<Kind>(kind),
               chosen->plan->name + " of " + std::to_string(ranks) + " ranks, " +
                   std::to_string(bytes) + " bytes");
        }
}

TEST(PlanScaling, AllPlansOfDevicesThatReduceMayHaveAFactorAndNoOthers) {
  forPlansOfDevices([](const plan::Plan &plan, Kind kind, const std::string &name) {
    EXPECT_EQ(mayHaveFactor(plan), isReduction(kind)) << name;
  });
}

TEST(PlanScaling, OnDevicesAveragesOfNarrowFloatsWithPartialSumsDivideTheirInputs) {
  forPlansOfDevices([](const plan::Plan &plan, Kind kind, const std::string &name) {
    for (DataType type : {DataType::Float16, DataType::Float8E4m3, DataType::Float8E5m2})
      EXPECT_EQ(dividesInputsOnDevice(plan, ReduceOp::Avg, type),
                dividesInputs(plan, ReduceOp::Avg, type))
          << name;
    for (DataType type : {DataType::Bfloat16, DataType::Float32, DataType::Float64, DataType::Int8,
                          DataType::Int32, DataType::Uint64})
      EXPECT_FALSE(dividesInputsOnDevice(plan, ReduceOp::Avg, type)) << name;
    EXPECT_FALSE(dividesInputsOnDevice(plan, ReduceOp::Sum, DataType::Float16)) << name;
    if (!isReduction(kind)) {
      EXPECT_FALSE(dividesInputsOnDevice(plan, ReduceOp::Avg, DataType::Float16)) << name;
    }
  });
}

TEST(PlanScaling, PartialSumsAreOfDividedInputs) {
  const plan::Plan ring = plan::testing::ringAllReduce(3);
  for (DataType type : {DataType::Float16, DataType::Float32})
    EXPECT_TRUE(dividesInputs(ring, ReduceOp::Avg, type));
  EXPECT_TRUE(dividesInputsOnDevice(ring, ReduceOp::Avg, DataType::Float16));
  EXPECT_FALSE(dividesInputsOnDevice(ring, ReduceOp::Avg, DataType::Float32));
  const plan::Plan twoShot = plan::testing::twoShotAllReduce(3);
  EXPECT_FALSE(dividesInputs(twoShot, ReduceOp::Avg, DataType::Float16));
  EXPECT_FALSE(dividesInputsOnDevice(twoShot, ReduceOp::Avg, DataType::Float16));
}

TEST(PlanScaling, NothingIsScaledInPlansThatRunInPlaceOnly) {
  plan::Plan ring = plan::testing::ringAllReduce(3);
  ring.outOfPlace = false;
  EXPECT_FALSE(mayHaveFactor(ring));
  EXPECT_FALSE(dividesInputs(ring, ReduceOp::Avg, DataType::Float32));
  EXPECT_FALSE(dividesInputsOnDevice(ring, ReduceOp::Avg, DataType::Float32));
}

} // namespace
} // namespace occl::daemon
