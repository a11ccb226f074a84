// Proof 6: every access to another rank's user buffer lies between that rank's begin and end.
#pragma once

#include "plan/verify/checks/execution.h"

namespace occl::plan::verify {

/// Memory of another rank is reached in two ways. Through connections: their slots belong to the
/// runtime, not to a user, and last longer than any invocation. Directly, as an operand of
/// loadReduceStore. That such an access comes after the owner's begin the runtime ensures: no
/// instruction runs before the ranks whose memory it names have announced that they have begun the
/// invocation. That it comes before the owner's end is proved here: a path leads from it to some
/// instruction of the owner, for the owner ends when all its instructions are complete. Since an
/// invocation begins on a rank only when the one before has ended there, this holds between
/// invocations, too; and tile by tile.
Finding checkLifetimes(const Network &network, const Execution &execution);

} // namespace occl::plan::verify
