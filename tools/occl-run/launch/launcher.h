// Starts the ranks of a job as processes of this machine, and sees to it that none outlives it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace occl::run {

struct LaunchOptions {
  uint32_t numRanks = 1;
  /// The program, looked for in PATH, and its arguments.
  std::vector<std::string> command;
  /// What a rank's process runs if there is no command; its result is the exit status.
  std::function<int(uint32_t rank)> body;
  /// Put "[rank] " before every line of output.
  bool tagOutput = false;
  /// After one rank has failed, or a signal has been passed on: the time in which the others may
  /// end by themselves.
  std::chrono::milliseconds grace{5000};
};

/// A name for a job, other than all others.
std::string newJobName();

/// Runs the command or body once for each rank with OCCL_JOB and what variables.h has in its
/// environment, nothing on its standard input, in a process group of its own. Returns when all have
/// ended: 0, or what an exit status should be: that of the first rank that failed, 128 + the signal
/// that killed it or that was passed on, 127 if the command cannot be run. Says on standard error
/// which rank failed and by what. Passes SIGINT, SIGTERM and SIGHUP on, and SIGUSR1, which asks
/// for reports, ends nothing, and is ignored at the ranks' start. Ranks die with this process,
/// however it ends. To be called from the main thread, without other threads.
int launch(const LaunchOptions &options);

} // namespace occl::run
