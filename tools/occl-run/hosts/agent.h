// occl-run's part on another machine: starts the ranks there, passes their output back, and ends
// them if occl-run or the connection to it ends.
#pragma once

namespace occl::run {

/// How occl-run calls itself there.
inline constexpr const char *kAgentWord = "--agent";

/// Speaks with occl-run by standard input and output: wire.h. Returns the exit status.
int runAgent();

} // namespace occl::run
