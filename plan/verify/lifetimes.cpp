#include "plan/verify/lifetimes.h"

namespace occl::plan::verify {

Finding checkLifetimes(const Network &network) {
  const Plan &plan = network.plan;
  for (uint32_t index = 0; index < plan.instructions.size(); ++index) {
    const Instruction &instruction = plan.instructions[index];
    uint32_t rank = network.rankOf(index);
    for (uint32_t i = 0; i < instruction.numSources + instruction.numDestinations; ++i) {
      const Operand &operand = plan.operands[instruction.firstOperand + i];
      if (operand.kind != OperandKind::Connection && operand.rank != rank)
        return errorAt(plan, index, Proof::Lifetime,
                       "nothing ties this access to the lifetime of rank " +
                           std::to_string(operand.rank) + "'s buffer");
    }
  }
  return {};
}

} // namespace occl::plan::verify
