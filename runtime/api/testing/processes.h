// For tests of ranks that are processes: each rank is a child of the test; what it finds out is its
// exit status.
#pragma once

#include "runtime/api/occl.h"

#include <cstdint>
#include <functional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace occl::communicator::testing {

/// Runs body(rank) in numRanks processes, which return "" or what is wrong. To be made before the
/// test itself has started threads.
class Processes {
public:
  Processes(uint32_t numRanks, const std::function<std::string(uint32_t)> &body);

  ~Processes();
  Processes(const Processes &) = delete;
  Processes &operator=(const Processes &) = delete;

  /// Waits for rank r, at most a minute times kSlowness; its exit status, 0 if nothing was wrong,
  /// or -1 if it was killed.
  int join(uint32_t r);
  /// What body(r) has returned, at most some thousand characters of it.
  std::string wrong(uint32_t r) const;
  pid_t pid(uint32_t r) const { return pids[r]; }
  void signal(uint32_t r, int number) const;
  void kill(uint32_t r) const;

private:
  struct Said;

  Said *said; // by rank, shared with the children
  std::vector<pid_t> pids;
};

/// A name for a communicator of the calling test.
std::string jobName(const char *test);

/// Where the ranks of a communicator of that name meet, while one is missing.
std::string meetingPath(const std::string &name);

/// In each of numRanks processes: joins a communicator with this configuration, runs
/// body(comm, rank), which returns "" or what is wrong, and leaves. Expects that nothing is wrong.
void inProcesses(uint32_t numRanks, const char *test,
                 const std::function<std::string(occlComm_t, uint32_t)> &body,
                 const occlConfig_t &config = OCCL_CONFIG_INITIALIZER);

} // namespace occl::communicator::testing
