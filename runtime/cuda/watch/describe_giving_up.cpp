// Reports of kernels that gave up, from the words that they left.
#include "runtime/cuda/watch/describe_giving_up.h"

#include "runtime/cuda/tables/replay_word.h"
#include "runtime/observe/report/wait_text.h"

namespace occl::cuda {

namespace {

std::string describeObstacle(const interpreter::Obstacle &obstacle) {
  // The text continues "waits for".
  std::string peer = "rank " + std::to_string(obstacle.peer);
  switch (obstacle.reason) {
  case interpreter::BlockReason::Data:
    return "data from " + peer;
  case interpreter::BlockReason::Credit:
    return peer + " to read what it was sent";
  case interpreter::BlockReason::Signal:
    return "a signal from " + peer;
  case interpreter::BlockReason::Dependency:
    return "thread block " + std::to_string(obstacle.what) + " of the same rank";
  case interpreter::BlockReason::Announce:
  case interpreter::BlockReason::None:
    break;
  }
  return peer;
}

} // namespace

StatusCode codeOf(const GivingUp &where) {
  if (where.isBeginning == 0)
    return StatusCode::Timeout;
  switch (where.obstacle.what) {
  case kTwoReplays:
  case kMisusedPart:
    return StatusCode::InvalidArgument;
  case kOtherCall:
  case kFreedPart:
    return StatusCode::Mismatch;
  default:
    return StatusCode::Timeout;
  }
}

std::string describeCall(const daemon::CollectiveSpec &spec) {
  return "'" + (spec.name.empty() ? spec.plan->name : spec.name) + "' of " +
         std::to_string(spec.count) + " elements of type " + nameOf(spec.type) + ", " +
         nameOf(spec.op);
}

std::string describeGivingUp(const GivingUp &where, const daemon::CollectiveSpec &spec,
                             uint32_t rank) {
  std::string text = "rank " + std::to_string(rank) + " gave up in call " +
                     std::to_string(where.invocation) + ", " + describeCall(spec) + ": ";
  // It had not begun: the call was refused, or an earlier one or another rank was late.
  if (where.isBeginning != 0) {
    if (where.obstacle.what == kOtherCall)
      return text + "rank " + std::to_string(where.obstacle.peer) +
             " calls something else there: another kind or plan, count, type, operation or root. "
             "All ranks make the calls of a communicator in one order";
    if (where.obstacle.what == kTwoReplays)
      return text + "another call of the communicator runs beside it. What graphs have captured is "
                    "ordered by their streams and the program's events alone";
    const char *why[] = {" to make its first call", " to begin it, or to finish an earlier one",
                         " to finish its own calls before"};
    return text + "waits for rank " + std::to_string(where.obstacle.peer) +
           why[where.obstacle.what % 3];
  }
  return text +
         insight::describePosition(spec.plan.get(),
                                   {rank, where.block, where.context.instruction}) +
         ", tile " + std::to_string(where.context.tile) + ", waits for " +
         describeObstacle(where.obstacle);
}

} // namespace occl::cuda
