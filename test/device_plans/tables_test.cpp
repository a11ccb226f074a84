// The plans of device_plans.tsv and resident_plans.tsv, bound as communicators on devices bind
// them, with registered and with ordinary buffers and counts up to 2^30: their messages and words
// fit into a communicator's memory, the tables of every thread block into a device's shared memory.
#include "runtime/cuda/calls/bind_for_device.h"
#include "runtime/cuda/calls/ordered_geometry.h"
#include "runtime/cuda/tables/limits.h"
#include "runtime/plan_library/plan_library.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace occl {
namespace {

using plan_library::Kind;
using plan_library::PlanClass;

/// With as much memory as a communicator has unless it is told otherwise, and by kernels for which
/// thread blocks have images even if they are straight.
StatusOr<cuda::DeviceBinding> bindOnDevice(const plan::Plan &plan, uint64_t bytes, uint32_t rank,
                                           bool isResident) {
  const bool hasLines = plan.protocol != plan::Protocol::Simple;
  const auto sizes =
      isResident ? cuda::OrderedGeometry::forLane(plan.numRanks, hasLines, true)
                 : cuda::OrderedGeometry::forMemory(plan.numRanks, {256 << 20, 256 << 20}, true);
  return cuda::bindForDevice(
      plan, sizes,
      {.rank = rank, .count = bytes / sizeof(float), .kernels = cuda::Kernels::Resident});
}

class Tables : public testing::TestWithParam<PlanClass> {};

TEST_P(Tables, FitIntoSharedMemory) {
  const bool isResident =
      GetParam() == PlanClass::ResidentRegistered || GetParam() == PlanClass::ResidentOrdinary;
  auto &library = plan_library::PlanLibrary::ofProcess();
  uint32_t seen = 0;
  for (uint32_t kind = 0; kind < plan_library::kNumKinds; ++kind)
    for (uint32_t numRanks = 1; numRanks <= cuda::kMaxRanks; ++numRanks)
      for (uint64_t bytes = 4; bytes <= 1ull << 32; bytes *= 2) {
        const uint64_t odd = bytes + 4;
        auto chosen = library.choose({static_cast<Kind>(kind), numRanks, odd, 0, GetParam()});
        ASSERT_TRUE(chosen.ok()) << chosen.status().message();
        for (uint32_t rank = 0; rank < numRanks; ++rank) {
          auto bound = bindOnDevice(*chosen->plan, odd, rank, isResident);
          ASSERT_TRUE(bound.ok()) << chosen->plan->collective << " of " << numRanks << " ranks, "
                                  << odd << " bytes: " << bound.status().message();
          const uint32_t numBlocks = bound->bound->program().numBlocks;
          ASSERT_TRUE(numBlocks == 0 || bound->tables.imageStride != 0)
              << chosen->plan->name << ", " << numRanks << " ranks, " << odd << " bytes, rank "
              << rank;
          seen += numBlocks;
        }
      }
  EXPECT_GT(seen, 1000u);
}

INSTANTIATE_TEST_SUITE_P(Classes, Tables,
                         testing::Values(PlanClass::DeviceRegistered, PlanClass::DeviceOrdinary,
                                         PlanClass::ResidentRegistered,
                                         PlanClass::ResidentOrdinary));

} // namespace
} // namespace occl
