#include "nccl/bootstrap/socket.h"

#include <mutex>
#include <pthread.h>
#include <set>
#include <unistd.h>

namespace occl::nccl {

namespace {

struct Registry {
  std::mutex mutex;
  std::set<int> files;
  uint32_t process = 0; // how many forks lead here
};

/// Not destroyed: a process may fork while it ends.
Registry &registry() {
  static Registry *const it = new Registry;
  return *it;
}

void beforeFork() { registry().mutex.lock(); }
void afterForkInParent() { registry().mutex.unlock(); }

void afterForkInChild() {
  for (int file : registry().files)
    close(file);
  registry().files.clear(); // whatever has these numbers next is the child's
  ++registry().process;
  registry().mutex.unlock();
}

/// While one lives nobody forks.
class NoFork {
public:
  NoFork() {
    static const int watched = pthread_atfork(beforeFork, afterForkInParent, afterForkInChild);
    static_cast<void>(watched);
    registry().mutex.lock();
  }
  ~NoFork() { registry().mutex.unlock(); }
  NoFork(const NoFork &) = delete;
  NoFork &operator=(const NoFork &) = delete;
};

} // namespace

Socket Socket::open(const std::function<int()> &open) {
  const NoFork none;
  auto &all = registry().files;
  // What needs memory comes first: with a place for it, it is open and registered, or neither.
  auto place = all.extract(all.insert(-1).first);
  Socket opened;
  opened.file = open();
  if (!opened)
    return opened;
  opened.process = registry().process;
  place.value() = opened.file;
  all.insert(std::move(place));
  return opened;
}

Socket::~Socket() {
  if (file < 0)
    return;
  const NoFork none; // between the two a child would keep it
  if (process != registry().process)
    return; // closed when this process was made, and the number is somebody else's
  registry().files.erase(file);
  close(file);
}

} // namespace occl::nccl
