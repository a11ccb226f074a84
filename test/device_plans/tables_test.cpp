// The plans of device_plans.tsv and resident_plans.tsv, bound as communicators on devices bind
// them, with registered and with ordinary buffers: the tables of every thread block fit into a
// device's shared memory, whatever the count.
#include "runtime/cuda/calls/ordered_geometry.h"
#include "runtime/cuda/tables/block_image.h"
#include "runtime/cuda/tables/limits.h"
#include "runtime/exec/bind/bind.h"
#include "runtime/plan_library/plan_library.h"
#include "test/device_plans/request.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace occl {
namespace {

using plan_library::Kind;
using plan_library::PlanClass;

/// As Shape::bindTo(), with as much memory as a communicator has unless it is told otherwise.
StatusOr<std::shared_ptr<const interpreter::Binding>>
bindOnDevice(const plan::Plan &plan, uint64_t bytes, uint32_t rank, bool isResident) {
  const bool hasLines = plan.protocol != plan::Protocol::Simple;
  const auto sizes = isResident ? cuda::OrderedGeometry::forLane(plan.numRanks, hasLines, true)
                                : cuda::OrderedGeometry::forMemory(plan.numRanks, 256 << 20, true);
  const auto part = sizes.partFor(plan.protocol);
  interpreter::BindRequest request = requestFor(plan, bytes, rank, sizes);
  request.mostArenaBytes = part.offset + part.bytes;
  request.smallestMessageBytes = 4096;
  return interpreter::bind(plan, request);
}

class Tables : public testing::TestWithParam<PlanClass> {};

TEST_P(Tables, FitIntoSharedMemory) {
  const bool isResident =
      GetParam() == PlanClass::ResidentRegistered || GetParam() == PlanClass::ResidentOrdinary;
  auto &library = plan_library::PlanLibrary::ofProcess();
  uint32_t seen = 0;
  for (uint32_t kind = 0; kind < plan_library::kNumKinds; ++kind)
    for (uint32_t numRanks : {1u, 2u, 3u, 4u, 8u})
      for (uint64_t bytes = 4; bytes <= 1ull << 32; bytes *= 8) {
        const uint64_t odd = bytes + 4;
        auto chosen = library.choose({static_cast<Kind>(kind), numRanks, odd, 0, GetParam()});
        ASSERT_TRUE(chosen.ok()) << chosen.status().message();
        for (uint32_t rank = 0; rank < numRanks; ++rank) {
          auto bound = bindOnDevice(*chosen->plan, odd, rank, isResident);
          ASSERT_TRUE(bound.ok()) << bound.status().message();
          const interpreter::Program &program = (*bound)->program();
          for (uint32_t b = 0; b < program.numBlocks; ++b, ++seen)
            ASSERT_LE(cuda::makeBlockImage(program, b).size(), cuda::kTableBytes)
                << chosen->plan->name << ", " << numRanks << " ranks, " << odd << " bytes, rank "
                << rank << ", thread block " << b;
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
