// Closes connections in children of fork(), so that peers see the end of their owner.
#include "runtime/net/transport/forked.h"

#include "runtime/sync/mutex.h"

#include <mutex>
#include <pthread.h>
#include <unistd.h>
#include <unordered_set>

namespace occl::net {
namespace {

struct Registry {
  Mutex mutex;
  std::unordered_set<int> descriptors;
};

/// Not destroyed: a process may fork while it ends.
Registry &registry() {
  static Registry *const it = new Registry;
  return *it;
}

// The lock is held across fork(), so the child finds a whole set and a lock that it can release.
void beforeFork() { registry().mutex.lock(); }
void afterForkInParent() { registry().mutex.unlock(); }

void afterForkInChild() {
  for (int descriptor : registry().descriptors)
    close(descriptor);
  registry().descriptors.clear(); // whatever has these numbers next is the child's
  registry().mutex.unlock();
}

} // namespace

ClosedInChildren::ClosedInChildren(int descriptor) : descriptor(descriptor) {
  // The handlers are installed once and stay in children, which may fork in turn.
  static const int watched = pthread_atfork(beforeFork, afterForkInParent, afterForkInChild);
  static_cast<void>(watched);
  std::lock_guard lock(registry().mutex);
  registry().descriptors.insert(descriptor);
}

ClosedInChildren::~ClosedInChildren() {
  std::lock_guard lock(registry().mutex);
  registry().descriptors.erase(descriptor);
}

} // namespace occl::net
