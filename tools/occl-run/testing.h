// For tests that drive a program as a user does.
#pragma once

#include <cstdio>
#include <string>
#include <sys/wait.h>

namespace occl::run::testing {

struct Result {
  int status = -1;    // exit status; -1 if a signal ended it
  std::string output; // both streams
};

/// Runs occl-run with these arguments, as a shell reads them.
inline Result occlRun(const std::string &arguments) {
  Result result;
  FILE *pipe = popen(("tools/occl-run/occl-run " + arguments + " 2>&1").c_str(), "r");
  char buffer[4096];
  while (size_t length = fread(buffer, 1, sizeof buffer, pipe))
    result.output.append(buffer, length);
  int status = pclose(pipe);
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return result;
}

inline bool contains(const Result &result, const std::string &text) {
  return result.output.find(text) != std::string::npos;
}

} // namespace occl::run::testing
