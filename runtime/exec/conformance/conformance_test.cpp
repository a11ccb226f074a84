// Every program, with every data type and operation, in both alias modes, at awkward counts and on
// several numbers of ranks, against the reference.
#include "plan/verify/verifier.h"
#include "runtime/exec/conformance/conformance.h"
#include "runtime/exec/conformance/programs.h"

#include <gtest/gtest.h>

namespace occl::interpreter::conformance {
namespace {

constexpr uint32_t kRanks[] = {1, 2, 3, 5, 8, 16};
/// Small enough for several tiles at 10007 elements.
constexpr TilePolicy kSmallTiles = {.messageBytes = 1000, .slicesPerMessage = 1};

class Conformance : public testing::TestWithParam<NamedProgram> {
protected:
  /// In every alias mode that the plan is valid for, and every placement; on hosts, on devices, and
  /// with ranks on either.
  void check(const plan::Plan &plan, SimulationOptions options, uint64_t seed,
             uint32_t maxSlices = 3) {
    for (Placement placement : {Placement::AtSource, Placement::AtDestination}) {
      options.placement = placement;
      for (bool hostSteps : {true, false}) {
        options.hostSteps = hostSteps;
        checkAliasModes(plan, options, seed, maxSlices);
      }
    }
    options.mixesSteps = plan.numRanks > 1;
    if (options.mixesSteps)
      checkAliasModes(plan, options, seed, maxSlices);
  }

  void checkAliasModes(const plan::Plan &plan, SimulationOptions options, uint64_t seed,
                       uint32_t maxSlices) {
    for (bool inPlace : {false, true}) {
      if (inPlace ? !plan.inPlace || isShift() : !plan.outOfPlace)
        continue;
      options.inPlace = inPlace;
      Status status = checkCollective(plan, options, seed, [&](Simulation &simulation) {
        return runRandomly(simulation, seed, maxSlices);
      });
      ASSERT_TRUE(status.ok()) << status.message() << "\n  " << plan.numRanks << " ranks, "
                               << options.count << " elements of " << nameOf(options.type) << ", "
                               << nameOf(options.op) << (inPlace ? ", in place" : "")
                               << (options.placement == Placement::AtSource ? "" : ", pushed")
                               << (options.hostSteps    ? ", on hosts"
                                   : options.mixesSteps ? ", on both"
                                                        : "")
                               << ", seed " << seed;
    }
  }
  /// The reference has its in-place form nowhere to look up: the input is gone.
  static bool isShift() { return std::string(GetParam().name) == "shift"; }
};

TEST_P(Conformance, AllTypesAndOperations) {
  for (uint32_t ranks : {3u, 8u}) {
    plan::Plan plan = GetParam().make(ranks);
    for (unsigned type = 0; type < kNumDataTypes; ++type)
      for (unsigned op = 0; op < kNumReduceOps; ++op)
        ASSERT_NO_FATAL_FAILURE(check(
            plan, {.count = 307, .type = DataType(type), .op = ReduceOp(op), .tiles = kSmallTiles},
            100 + type));
  }
}

TEST_P(Conformance, AwkwardCountsAndAllNumbersOfRanks) {
  for (uint32_t ranks : kRanks) {
    plan::Plan plan = GetParam().make(ranks);
    for (uint64_t count : {uint64_t(0), uint64_t(1), uint64_t(ranks - 1), uint64_t(ranks),
                           uint64_t(10007), uint64_t(64 * ranks)})
      for (DataType type : {DataType::Float32, DataType::Uint8})
        ASSERT_NO_FATAL_FAILURE(
            check(plan, {.count = count, .type = type, .tiles = kSmallTiles}, count + ranks));
  }
}

TEST_P(Conformance, SeveralSlicesAMessage) {
  for (uint32_t ranks : {2u, 5u}) {
    plan::Plan plan = GetParam().make(ranks);
    for (uint32_t slices : {2u, 3u, 8u})
      for (uint64_t count : {uint64_t(1), uint64_t(5000)})
        ASSERT_NO_FATAL_FAILURE(check(
            plan, {.count = count, .op = ReduceOp::Avg, .tiles = {4000, slices}, .misalignment = 4},
            count + slices, 1));
  }
}

/// Messages find their slots free, or wait for credit, or are cut: grouped or not.
TEST_P(Conformance, SeveralInstructionsAStep) {
  for (uint32_t ranks : {2u, 4u, 7u}) {
    plan::Plan plan = GetParam().make(ranks);
    for (const TilePolicy &tiles : {TilePolicy{1 << 20, 1}, kSmallTiles, TilePolicy{4000, 2}})
      for (uint64_t count : {uint64_t(1), uint64_t(5003)})
        for (uint32_t operands : {4u, 64u})
          ASSERT_NO_FATAL_FAILURE(check(plan,
                                        {.count = count, .tiles = tiles, .stepOperands = operands},
                                        count + operands, 1));
  }
}

TEST_P(Conformance, UnalignedBuffersAndManyTiles) {
  plan::Plan plan = GetParam().make(4);
  for (uint64_t misalignment : {1, 2, 12})
    for (DataType type : {DataType::Float16, DataType::Float64})
      ASSERT_NO_FATAL_FAILURE(check(
          plan, {.count = 40001, .type = type, .tiles = kSmallTiles, .misalignment = misalignment},
          misalignment));
}

/// Or the suite would show nothing about plans that the runtime accepts.
TEST_P(Conformance, VerifierAcceptsTheProgram) {
  for (uint32_t ranks : kRanks) {
    plan::VerifyResult result = plan::verifyPlan(GetParam().make(ranks));
    EXPECT_TRUE(result.isOk()) << ranks << " ranks: " << result.text();
  }
}

INSTANTIATE_TEST_SUITE_P(Programs, Conformance,
                         testing::ValuesIn(programs().begin(), programs().end()),
                         [](const auto &info) { return std::string(info.param.name); });

} // namespace
} // namespace occl::interpreter::conformance
