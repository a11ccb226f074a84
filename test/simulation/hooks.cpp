// explored.h, answered by the simulated cluster. Threads run until they sleep: other interleavings
// are test/explore's.
#include "test/explore/explorer/access_observer.h"
#include "test/simulation/world.h"

#include <map>
#include <utility>

namespace occl {

using simulation::World;

SteadyClock::time_point SteadyClock::now() {
  return World::current() ? World::current()->now() : time_point{};
}

explore::AccessObserver *explore::accessObserver() { return nullptr; }

namespace explored {

void reach(const char *, const void *, const Where &) {}
bool keepStore(void *, uint64_t, size_t, std::memory_order) { return false; }
bool findStore(const void *, uint64_t &) { return false; }
void begin(const void *) {}
void end(const void *) {}
void use(const void *) {}
void drain() {}

bool park(const void *key, SteadyClock::time_point deadline, Sleep, const Where &) {
  return World::current()->park(key, deadline);
}

void wake(const void *key) {
  if (World::current())
    World::current()->wake(key);
}
void wakeOne(const void *key) {
  if (World::current())
    World::current()->wake(key, false);
}
void foundUnwoken(const Where &) {}

void yield(std::chrono::nanoseconds time, const Where &) {
  World::current()->park(nullptr, World::current()->now() + time);
}

uint32_t spawn(std::function<void()> body) { return World::current()->spawn(std::move(body)); }
bool hasEnded(uint32_t thread) { return World::current()->hasEnded(thread); }
uint32_t currentThread() { return World::current() ? World::current()->currentThread() : 0; }
void *placeOfThisThread(const void *kind) {
  static std::map<const void *, void *> outside;
  return currentThread() != 0 ? &World::current()->placeOfThisThread(kind) : &outside[kind];
}
const void *endOf(uint32_t thread) { return World::current()->endOf(thread); }

} // namespace explored
} // namespace occl
