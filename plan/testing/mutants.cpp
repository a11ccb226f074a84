#include "plan/testing/mutants.h"

#include "plan/testing/parts.h"

namespace occl::plan::testing {

namespace {

class Mutator {
public:
  Mutator(const Plan &plan, std::mt19937 &random)
      : plan(plan), random(random), blocks(takeApart(plan)) {
    do {
      rank = pick(blocks.size());
      block = blocks[rank].empty() ? 0 : pick(blocks[rank].size());
    } while (blocks[rank].empty() || blocks[rank][block].empty());
    position = pick(steps().size());
  }

  std::string run(Plan &result) {
    std::string what = change();
    result = putTogether(plan, blocks);
    return what + " at rank " + std::to_string(rank) + ", thread block " + std::to_string(block) +
           ", instruction " + std::to_string(position);
  }

private:
  size_t pick(size_t size) { return random() % size; }
  std::vector<Step> &steps() { return blocks[rank][block]; }
  Step &step() { return steps()[position]; }
  uint32_t nudged(uint32_t number) { return number + (random() % 2 == 0 ? 1 : ~0u); }

  std::string change() {
    switch (pick(8)) {
    case 0:
      return dropInstruction();
    case 1:
      return dropDependency();
    case 2:
      return exchange();
    case 3:
      return retarget();
    case 4:
      return resize();
    case 5:
      return shiftChannel();
    case 6:
      return moveDependency();
    default:
      step().instruction.final = !step().instruction.final;
      return "final mark changed";
    }
  }

  std::string dropInstruction() {
    steps().erase(steps().begin() + static_cast<ptrdiff_t>(position));
    return "instruction dropped";
  }

  /// Of any instruction, as many have none.
  std::string dropDependency() {
    std::vector<Step *> having;
    for (auto &rank : blocks)
      for (auto &block : rank)
        for (Step &step : block)
          if (!step.dependencies.empty())
            having.push_back(&step);
    if (having.empty())
      return dropInstruction();
    std::vector<Dependency> &dependencies = having[pick(having.size())]->dependencies;
    dependencies.erase(dependencies.begin() + static_cast<ptrdiff_t>(pick(dependencies.size())));
    return "dependency dropped";
  }

  std::string exchange() {
    size_t other = position + 1 < steps().size() ? position + 1 : pick(steps().size());
    std::swap(step(), steps()[other]);
    return "exchanged with instruction " + std::to_string(other);
  }

  std::string retarget() {
    Step &changed = step();
    bool isSource = random() % 2 == 0;
    std::vector<Operand> &operands = isSource ? changed.sources : changed.destinations;
    if (operands.empty())
      return dropInstruction();
    Operand &operand = operands[pick(operands.size())];
    if (random() % 4 == 0 && operand.kind != OperandKind::Connection)
      operand.kind = static_cast<OperandKind>(random() % 3);
    else
      operand.index = nudged(operand.index);
    return isSource ? "source changed" : "destination changed";
  }

  std::string resize() {
    if (random() % 2 == 0)
      step().instruction.count = nudged(step().instruction.count);
    else
      step().instruction.extent = nudged(step().instruction.extent);
    return "size changed";
  }

  /// To another connection with an end here, of the same ranks if there is one.
  std::string shiftChannel() {
    for (bool isSource : {random() % 2 == 0, true, false})
      for (Operand &operand : isSource ? step().sources : step().destinations) {
        if (operand.kind != OperandKind::Connection)
          continue;
        const Connection &old = plan.connections[operand.index];
        for (uint32_t c = 0; c < plan.connections.size(); ++c)
          if (c != operand.index && plan.connections[c].source == old.source) {
            operand.index = c;
            return "channel changed";
          }
      }
    return exchange();
  }

  std::string moveDependency() {
    if (step().dependencies.empty())
      return dropDependency();
    Dependency &dependency = step().dependencies[pick(step().dependencies.size())];
    dependency.instruction = nudged(dependency.instruction);
    return "dependency moved";
  }

  const Plan &plan;
  std::mt19937 &random;
  Blocks blocks;
  size_t rank, block, position;
};

} // namespace

std::string mutate(Plan &plan, std::mt19937 &random) {
  Plan original = plan;
  return Mutator(original, random).run(plan);
}

} // namespace occl::plan::testing
