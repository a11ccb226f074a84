#include "runtime/control/shm/forked.h"

#include <mutex>
#include <pthread.h>
#include <unistd.h>
#include <unordered_set>

namespace occl::bootstrap {
namespace {

struct Registry {
  std::mutex mutex; // no step of explored schedules: nothing else happens while it is held
  std::unordered_multiset<int> descriptors; // one may have several reasons
};

/// Not destroyed: a process may fork while it ends.
Registry &registry() {
  static Registry *const it = new Registry;
  return *it;
}

void beforeFork() { registry().mutex.lock(); }
void afterForkInParent() { registry().mutex.unlock(); }

void afterForkInChild() {
  for (int descriptor : registry().descriptors)
    close(descriptor);
  registry().descriptors.clear(); // whatever has these numbers next is the child's
  registry().mutex.unlock();
}

} // namespace

NoFork::NoFork() {
  static const int watched = pthread_atfork(beforeFork, afterForkInParent, afterForkInChild);
  static_cast<void>(watched);
  registry().mutex.lock();
}

NoFork::~NoFork() { registry().mutex.unlock(); }

Descriptor openNotInherited(const std::function<int()> &open) {
  const NoFork none;
  Descriptor opened(open());
  if (opened.valid())
    registry().descriptors.insert(opened.get());
  return opened;
}

Descriptor::~Descriptor() {
  if (number < 0)
    return;
  const NoFork none; // between the two a child would keep it
  registry().descriptors.erase(number);
  close(number);
}

ClosedInChildren::ClosedInChildren(int descriptor) : descriptor(descriptor) {
  const NoFork none;
  registry().descriptors.insert(descriptor);
}

ClosedInChildren::~ClosedInChildren() {
  const NoFork none;
  auto &all = registry().descriptors;
  if (const auto found = all.find(descriptor); found != all.end()) // not in a child
    all.erase(found);
}

} // namespace occl::bootstrap
