// Proof 4: any two accesses of one location, one of them a write, are ordered: by a thread block's
// own order, by dependencies, by messages of ordered connections (a receive follows its send) and
// by signals (a wait follows the signals that it waits for, and all before them), not by credits.
// Other messages order only what they carry, so nothing here. That reads follow a write at all is
// checked by the symbolic execution, for which this proof makes the order of execution immaterial.
//
// Tiles of one invocation touch different memory, an invocation starts on a rank only when the one
// before is complete there, and others touch a rank's memory only between the two (see
// lifetimes.h), so one tile of one invocation is enough.
//
// Near linear: clocks over the rank's own thread blocks decide almost all pairs, and the plan's
// witnesses most of the rest; what they leave open is looked for over the other ranks, within a
// budget. What is not found within it counts as a race.
#pragma once

#include "plan/verify/checks/execution.h"
#include "plan/verify/checks/locations.h"
#include "plan/verify/checks/witnesses.h"

namespace occl::plan::verify {

/// Expects the witnesses' orders, checked. Counts in `searches` the pairs that they left open.
Finding checkRaces(const Network &network, const Execution &execution, const KnownOrders &known,
                   AliasMode mode, uint64_t &searches);

} // namespace occl::plan::verify
