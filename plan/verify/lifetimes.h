// Proof 6: every access to another rank's user buffer lies between that rank's begin and end.
#pragma once

#include "plan/verify/network.h"

namespace occl::plan::verify {

/// Memory of another rank is reached in two ways. Through connections: their slots belong to the
/// runtime, not to a user, and last longer than any invocation. Directly, as an operand: that is
/// refused, for such an access could begin before its owner has submitted, or end after its owner
/// was told that it is complete.
Finding checkLifetimes(const Network &network);

} // namespace occl::plan::verify
