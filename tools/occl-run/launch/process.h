// Starts one process of a job so that it does not outlive the one that starts it.
#pragma once

#include <csignal>
#include <functional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace occl::run {

struct ProcessStart {
  /// The program, looked for in PATH, and its arguments.
  std::vector<std::string> command;
  /// What the process runs if there is no command; its result is the exit status.
  std::function<int()> body;
  std::vector<std::string> environment; // "NAME=value", beside this process's own
  std::string folder;                   // to work in; empty: this process's
  int input = -1;                       // -1: nothing to read
  int output = -1, errors = -1;         // -1: this process's
  sigset_t signals;                     // blocked
  std::vector<int> ignored;             // signals that it ignores
};

struct StartedProcess {
  pid_t pid = -1;
  /// Empty: it runs. Else why not, as "cannot run 'x': No such file or directory".
  std::string problem;
};

/// In a process group of its own. It is killed when the thread that calls this ends.
StartedProcess startProcess(const ProcessStart &start);

} // namespace occl::run
