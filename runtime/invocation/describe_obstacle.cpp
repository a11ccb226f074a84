// Waits of a thread block in words, for reports and errors.
#include "runtime/invocation/open_invocation.h"
#include "runtime/observe/report/known_collective.h"

namespace occl::daemon {

namespace {

using interpreter::BlockReason;

std::string what(const interpreter::Obstacle &obstacle) {
  std::string peer = "rank " + std::to_string(obstacle.peer);
  switch (obstacle.reason) {
  case BlockReason::None:
    break;
  case BlockReason::Announce:
    return peer + ", which has not submitted it, or not begun it";
  case BlockReason::Data:
    return "data from " + peer;
  case BlockReason::Credit:
    return peer + " to read what it was sent";
  case BlockReason::Dependency:
    // A mark of the program's, or another thread block.
    if (interpreter::isPartition(obstacle))
      return "partition " + std::to_string(obstacle.what - interpreter::kFirstPartition) +
             " of its input, which has not been marked ready";
    return "thread block " + std::to_string(obstacle.what) + " of the same rank";
  case BlockReason::Signal:
    return "a signal from " + peer;
  }
  return "an executor";
}

} // namespace

std::string describeObstacle(const BlockTask &task) {
  return describeObstacle(*task.invocation, task.block, task.instruction, task.obstacle);
}

std::string describeObstacle(const OpenInvocation &invocation, uint32_t block,
                             uint32_t instructionNumber, const interpreter::Obstacle &obstacle) {
  // Transfers have no plan and describe themselves.
  if (invocation.operation)
    return invocation.operation->describe(invocation.ordinal, obstacle, what(obstacle));
  const Collective &collective = *invocation.collective;
  const plan::Plan &plan = *collective.spec.plan;
  // The instruction as the plan has it, with its line in the algorithm.
  const plan::Instruction &instruction =
      plan.instructions[collective.binding->planInstruction(block, instructionNumber)];
  const insight::KnownCollective known{"", collective.spec.plan, collective.spec.rounds};
  std::string text = known.describeRound(collective.binding->program().rank, block) +
                     "thread block " + std::to_string(block) + ", instruction " +
                     std::to_string(instructionNumber) + " (" + plan::mnemonic(instruction.opcode) +
                     ")";
  // Plans may have been compiled without locations.
  if (instruction.location != plan::kNoLocation) {
    const plan::Location &location = plan.locations[instruction.location];
    text += " at " + plan.files[location.file] + ":" + std::to_string(location.line);
  }
  return text + " waits for " + what(obstacle);
}

} // namespace occl::daemon
