// Makes reductions that complete some of their chunks and not others into several.
#pragma once

#include "plan/model/plan.h"

#include <vector>

namespace occl::interchange {

/// The same plan with each reduction that is mixed so replaced: what it receives is received into
/// scratch of its own first, reduced in pieces, and sent from there; all messages stay as they are.
/// `completes` has an element for each chunk of each instruction, in order.
plan::Plan splitFinal(const plan::Plan &plan, const std::vector<bool> &completes);

} // namespace occl::interchange
