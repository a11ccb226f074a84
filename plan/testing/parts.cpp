#include "plan/testing/parts.h"

#include "plan/model/builder.h"

namespace occl::plan::testing {

Blocks takeApart(const Plan &plan) {
  Blocks blocks;
  for (const RankPlan &rank : plan.ranks) {
    blocks.emplace_back();
    for (const ThreadBlock &block : plan.threadBlocksOf(rank)) {
      blocks.back().emplace_back();
      for (const Instruction &i : plan.instructionsOf(block)) {
        auto copy = [](auto items) { return std::vector(items.begin(), items.end()); };
        blocks.back().back().push_back({i, copy(plan.sourcesOf(i)), copy(plan.destinationsOf(i)),
                                        copy(plan.dependenciesOf(i))});
      }
    }
  }
  return blocks;
}

Plan putTogether(const Plan &like, const Blocks &blocks) {
  PlanBuilder builder;
  builder.header() = like;
  Plan &plan = builder.header();
  plan.ranks.clear();
  plan.threadBlocks.clear();
  plan.instructions.clear();
  plan.operands.clear();
  plan.dependencies.clear();
  for (size_t r = 0; r < blocks.size(); ++r) {
    builder.beginRank(like.ranks[r]);
    for (const std::vector<Step> &block : blocks[r]) {
      builder.beginThreadBlock();
      for (const Step &step : block)
        builder.addInstruction(step.instruction, step.sources, step.destinations,
                               step.dependencies);
    }
  }
  return std::move(builder).take();
}

} // namespace occl::plan::testing
