#include "support/process/closed_in_children.h"

#include <mutex>
#include <pthread.h>
#include <unistd.h>
#include <unordered_set>
#include <utility>

namespace occl {
namespace {

struct Registry {
  std::mutex mutex; // no step of explored schedules: nothing else happens while it is held
  std::unordered_multiset<int> descriptors; // one may have several reasons
  uint32_t process = 1;                     // how many forks lead here, and one
};

/// Not destroyed: a process may fork while it ends.
Registry &registry() {
  static Registry *const it = new Registry;
  return *it;
}

void beforeFork() { registry().mutex.lock(); }
void afterForkInParent() { registry().mutex.unlock(); }

void afterForkInChild() {
  // Between fork and exec only async-signal-safe calls are allowed if there are other threads:
  // close() is one. The mutex is held by this thread's copy, so nothing here races.
  for (int descriptor : registry().descriptors)
    close(descriptor);
  registry().descriptors.clear(); // whatever has these numbers next is the child's
  ++registry().process;
  registry().mutex.unlock();
}

} // namespace

NoFork::NoFork() {
  static const int watched = pthread_atfork(beforeFork, afterForkInParent, afterForkInChild);
  static_cast<void>(watched);
  registry().mutex.lock();
}

NoFork::~NoFork() { registry().mutex.unlock(); }

OwnDescriptor openInThisProcess(const std::function<int()> &open) {
  const NoFork none;
  auto &all = registry().descriptors;
  // What needs memory comes first: with a place for it, it is open and registered, or neither.
  auto place = all.extract(all.insert(-1));
  const OwnDescriptor opened = {open(), registry().process};
  if (opened.number < 0)
    return {};
  place.value() = opened.number;
  all.insert(std::move(place));
  return opened;
}

void closeInThisProcess(const OwnDescriptor &opened) {
  if (opened.number < 0)
    return;
  const NoFork none; // between the two a child would keep it
  if (opened.process != registry().process)
    return; // closed when this process was made, and the number is somebody else's
  registry().descriptors.erase(opened.number);
  close(opened.number);
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

} // namespace occl
