// Loops whose rounds do not depend on each other, on several threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace occl::support {

/// How many threads a loop may use in this process, the caller's included. 1 until it is set, so
/// that who does not ask for threads gets none. To be set while no loop runs; 0 counts as 1.
void setNumThreads(unsigned count);

/// Calls body(i) for all i below `count`: in ascending order, or, if the `work` of all rounds
/// together, in instructions that they go over, is worth the start of threads, as many at a time as
/// threads are allowed, the lowest i first. A round must not write what another one accesses, so
/// that the result is the same either way. Returns when all rounds have; of several that throw, the
/// lowest round's exception is thrown. A loop in a round may have as many threads of its own.
void parallelFor(size_t count, uint64_t work, const std::function<void(size_t)> &body);

} // namespace occl::support
