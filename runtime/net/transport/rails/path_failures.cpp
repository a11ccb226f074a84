#include "runtime/net/transport/rails/path_failures.h"

#include "runtime/control/shm/forked.h"

namespace occl::net {

using bootstrap::NoFork; // the lock: a child must not find it taken

void PathFailures::addFailure(const Path &path, Clock::time_point now) {
  const NoFork lock;
  std::erase_if(until, [&](const auto &each) { return each.second <= now; });
  if (until.size() < kMost || until.contains(path))
    until[path] = now + kLifetime;
}

void PathFailures::remove(const Path &path) {
  const NoFork lock;
  until.erase(path);
}

bool PathFailures::hasFailed(const Path &path, Clock::time_point now) const {
  const NoFork lock;
  const auto found = until.find(path);
  return found != until.end() && now < found->second;
}

/// Not destroyed: a thread may make a communicator while the process ends.
PathFailures &PathFailures::ofProcess() {
  static auto *const it = new PathFailures;
  return *it;
}

} // namespace occl::net
