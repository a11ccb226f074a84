// Executing each thread block from an image of its own gives what executing the program gives.
#include "plan/testing/example_plans.h"
#include "runtime/cuda/tables/block_image.h"
#include "runtime/exec/conformance/conformance.h"
#include "runtime/exec/host/target_host.h"

#include <gtest/gtest.h>

namespace occl::cuda {
namespace {

using namespace interpreter;
using conformance::Simulation;

/// All blocks in turn, each with nothing but its image, until all are finished.
Status runFromImages(Simulation &simulation) {
  simulation.announceAll();
  std::vector<std::vector<std::pmr::vector<char>>> images(simulation.numRanks());
  for (uint32_t r = 0; r < simulation.numRanks(); ++r)
    for (uint32_t b = 0; b < simulation.numBlocks(r); ++b) {
      images[r].push_back(makeBlockImage(simulation.binding(r).program(), b));
      char *image = images[r][b].data();
      auto &header = *reinterpret_cast<ImageHeader *>(image);
      EXPECT_EQ(roomBytes(header), images[r][b].size());
      relocate(header, image);
    }
  HostTarget target;
  for (bool moved = true, finished = false; moved && !finished;) {
    moved = false;
    finished = true;
    for (uint32_t r = 0; r < simulation.numRanks(); ++r)
      for (uint32_t b = 0; b < simulation.numBlocks(r); ++b) {
        char *image = images[r][b].data();
        const auto &header = *reinterpret_cast<ImageHeader *>(image);
        Invocation invocation = simulation.invocation(r);
        invocation.program = &header.program;
        ReadyBlock<HostTarget, Resolution::PerStep> steps(
            invocation, header.program, header.ready,
            reinterpret_cast<ReadyWord *>(image + header.bytes), target);
        StepResult result = steps.run(simulation.context(r, b), 2);
        moved |= result.slices > 0;
        finished &= result.status == StepStatus::Finished;
      }
    if (finished)
      return {};
  }
  return {StatusCode::Deadlock, "nothing moves"};
}

void check(const plan::Plan &plan) {
  for (Placement placement : {Placement::AtSource, Placement::AtDestination}) {
    Status status = conformance::checkCollective(
        plan, {.count = 5003, .tiles = {2000, 2}, .placement = placement}, 5, runFromImages);
    EXPECT_TRUE(status.ok()) << plan.name << ": " << status.message();
  }
}

TEST(BlockImage, HoldsAllThatABlockNeeds) {
  for (uint32_t ranks : {2u, 5u}) {
    check(plan::testing::twoShotAllReduce(ranks)); // blocks that depend on each other
    check(plan::testing::shift(ranks));            // several chunks an instruction, scratch
    check(plan::testing::ringAllReduce(ranks));
  }
}

} // namespace
} // namespace occl::cuda
