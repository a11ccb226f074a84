// For tests that drive a program as a user does.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

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

inline std::string scratchFile(const std::string &name) {
  return std::string(std::getenv("TEST_TMPDIR")) + "/" + name;
}

/// Waits until `lines` lines are in the file, then returns them.
inline std::vector<std::string> awaitLines(const std::string &path, size_t lines) {
  for (int i = 0; i < 1000; ++i) {
    std::ifstream file(path);
    std::vector<std::string> found;
    for (std::string line; std::getline(file, line);)
      found.push_back(line);
    if (found.size() >= lines)
      return found;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ADD_FAILURE() << "no " << lines << " lines in " << path;
  return {};
}

inline bool isRunning(const std::string &pid) {
  std::ifstream file("/proc/" + pid + "/stat");
  std::string text;
  std::getline(file, text);
  return file && text.find(") Z") == std::string::npos;
}

inline bool endsSoon(const std::string &pid) {
  for (int i = 0; i < 500 && isRunning(pid); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return !isRunning(pid);
}

/// Starts occl-run with these options and so many ranks, which write their pids to the file and
/// then sleep, and sends it `signal`. Its status, or minus a signal; all ranks have to end.
inline int signalOcclRun(int signal, std::vector<std::string> options, uint32_t numRanks,
                         const std::string &file) {
  options.insert(options.begin(), "occl-run");
  // Each rank writes its own number before it becomes `sleep`, so that the test can look for
  // exactly these processes.
  for (const std::string &word : {std::string("-n"), std::to_string(numRanks), std::string("sh"),
                                  std::string("-c"), "echo $$ >> " + file + "; exec sleep 100"})
    options.push_back(word);
  std::vector<char *> words;
  for (std::string &option : options)
    words.push_back(option.data());
  words.push_back(nullptr);
  // Directly and not by a shell, which would have the process number instead.
  const pid_t launcher = fork();
  if (launcher == 0) {
    execv("tools/occl-run/occl-run", words.data());
    _exit(99);
  }
  // All ranks run before the signal is sent, or the test would not be about them.
  const std::vector<std::string> ranks = awaitLines(file, numRanks);
  kill(launcher, signal);
  int status = 0;
  waitpid(launcher, &status, 0);
  for (const std::string &pid : ranks)
    EXPECT_TRUE(endsSoon(pid));
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

} // namespace occl::run::testing
