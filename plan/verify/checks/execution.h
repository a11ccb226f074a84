// Proof 3: freedom from deadlock. An instruction that can fire stays able to until it does (it
// alone takes from its connections, and credits and dependencies only grow), so the order in which
// a plan is executed decides nothing: one greedy execution at depth K ends if and only if all do.
// Later tiles are later rounds of the same; one round that leaves all connections empty is as good
// as many.
#pragma once

#include "plan/verify/checks/network.h"

namespace occl::plan::verify {

/// An execution of a whole plan, thread blocks advancing as far as they can in turn.
struct Execution {
  /// All instructions in an order in which they can run.
  std::vector<uint32_t> order;
};

/// The smallest depth at which the plan cannot deadlock, given that it cannot at `depth`.
uint32_t smallestDepth(const Network &network, uint32_t depth);

/// Fills `execution` at the plan's depth; if it stops short, the error has the cycle of waits as
/// witness.
Finding checkDeadlock(const Network &network, Execution &execution);

} // namespace occl::plan::verify
