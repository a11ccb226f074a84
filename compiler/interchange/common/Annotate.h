// What a plan says of its values, for plans of tools that do not say it: which chunk of a part each
// instruction moves (Instruction::extent, Plan::uniformChunks), and which reductions complete their
// chunks (Instruction::final). Found by following the values through one execution.
#pragma once

#include "plan/model/plan.h"

namespace occl::interchange {

/// Sets extents, `final`, `uniformChunks`, and `average` if a promised reduction is reduced
/// further. Expects that every operand, connection and dependency of `plan` exists and that all
/// sizes are within the limits; nothing more: of a plan that is wrong otherwise it sets what it
/// can, and verifyPlan will say what is wrong. An instruction that completes some of its chunks and
/// not others is split.
void annotate(plan::Plan &plan);

} // namespace occl::interchange
