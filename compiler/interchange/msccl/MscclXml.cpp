#include "compiler/interchange/msccl/MscclXml.h"

#include <iterator>

namespace occl::interchange::msccl {

namespace {

// In the order of StepType. For rrs, rrc and rrcs the local operand is the source, whatever the
// destination says; rcs stores at the destination what it passes on.
constexpr StepShape kShapes[] = {
    {"s", true, false, true, false},    {"r", false, true, false, true},
    {"rcs", true, true, false, true},   {"rrs", true, true, true, false},
    {"rrc", false, true, true, true},   {"rrcs", true, true, true, true},
    {"cpy", false, false, true, true},  {"re", false, false, true, true},
    {"ra", false, false, false, false}, {"nop", false, false, false, false},
};

} // namespace

std::string_view mscclNameOf(plan::StandardCollective collective) {
  return collective == plan::StandardCollective::ReduceScatter ? "reduce_scatter"
                                                               : nameOf(collective);
}

const StepShape &shapeOf(StepType type) { return kShapes[static_cast<size_t>(type)]; }

std::optional<StepType> stepTypeOf(std::string_view name) {
  for (size_t i = 0; i < std::size(kShapes); ++i)
    if (kShapes[i].name == name)
      return static_cast<StepType>(i);
  return std::nullopt;
}

} // namespace occl::interchange::msccl
