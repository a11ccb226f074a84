#include "compiler/export/WaitText.h"

#include "plan/io/printer.h"

namespace occl::exporter {

std::string waitText(const plan::Plan &plan, cost::Wait wait, uint32_t cause) {
  // Waiting for an executor has no cause among the instructions.
  if (wait == cost::Wait::Executor)
    return "a free executor: other thread blocks of the rank or the node run";
  if (cause == cost::kNoCause)
    return cost::nameOf(wait);
  plan::Place place = plan::placeOf(plan, cause);
  std::string block = "thread block " + std::to_string(place.threadBlock),
              rank = "rank " + std::to_string(place.rank),
              position = "instruction " + std::to_string(place.instruction);
  // The cause as people look for it: place, then source line.
  std::string source = plan::describeLocation(plan, plan.instructions[cause].location);
  if (!source.empty())
    source = ", " + source;
  switch (wait) {
  case cost::Wait::Message:
    return rank + "'s message (" + block + ", " + position + source + ")";
  case cost::Wait::Signal:
    return rank + "'s signal (" + block + ", " + position + source + ")";
  case cost::Wait::Credit:
    return rank + " to receive an earlier message and make room (" + block + ", " + position +
           source + ")";
  case cost::Wait::Dependency:
    return block + " of its rank (" + position + source + ")";
  default:
    return cost::nameOf(wait);
  }
}

} // namespace occl::exporter
