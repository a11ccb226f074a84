// `occl nccl CMD...`: a program and its children find OCCL in the place of NCCL.
#pragma once

#include <string>
#include <vector>

namespace occl::driver {

/// Runs the command with OCCL's libnccl.so.2 before all others, waits for it, and says on standard
/// error if nothing of it has made a communicator. isOnHost: buffers are host memory
/// (OCCL_NCCL_HOST). Returns what an exit status should be: the command's, 128 + the signal that
/// killed it; 127 or 126 if it cannot be run, 1 if the library is not there. SIGTERM, SIGHUP,
/// SIGUSR1 and SIGUSR2 are passed on, and SIGINT and SIGQUIT if a process has sent them: those of
/// the terminal reach the command by themselves. To be called without other threads.
int runWithNccl(const std::vector<std::string> &command, bool isOnHost);

} // namespace occl::driver
