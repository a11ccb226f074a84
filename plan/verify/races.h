// Proof 4: any two accesses of one location, one of them a write, are ordered: by a thread block's
// own order, by dependencies, by messages (a receive follows its send) and by signals (a wait
// follows the signals that it waits for, and all before them), not by credits. LL and LL128
// messages order only what they carry, so nothing here. That reads follow a write at all is checked
// by the symbolic execution, for which this proof makes the order of execution immaterial.
//
// Tiles of one invocation touch different memory, an invocation starts on a rank only when the one
// before is complete there, and others touch a rank's memory only between the two (see
// lifetimes.h), so one tile of one invocation is enough.
//
// Near linear: clocks over the rank's own thread blocks decide almost all pairs; what they leave
// open is looked for over the other ranks, within a budget. What is not found within it counts as a
// race.
#pragma once

#include "plan/verify/execution.h"
#include "plan/verify/locations.h"

namespace occl::plan::verify {

Finding checkRaces(const Network &network, const Execution &execution, AliasMode mode);

} // namespace occl::plan::verify
