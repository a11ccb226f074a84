// explored.h over real threads, of which one runs at a time: who holds `turn`. The first thread has
// it from the start; sleeping and waiting give it away.
#include "runtime/sync/explored.h"
#include "test/explore/explorer/access_observer.h"
#include "test/faults/passing.h"

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

namespace occl {

namespace {

using namespace std::chrono_literals;

struct Turn {
  Turn() { mutex.lock(); }

  std::mutex mutex;
  std::condition_variable_any woken;
};

Turn &turn() {
  static Turn *instance = new Turn; // for threads that outlive static objects
  return *instance;
}

/// The first thread has the turn before it starts another.
[[maybe_unused]] Turn &fromTheStart = turn();

/// What other processes do wakes nobody here: nothing sleeps longer, and callers look again.
constexpr std::chrono::nanoseconds kLongestSleep = 500us;

std::vector<bool> ended; // by number - 1; the first thread is 0
thread_local uint32_t ownNumber = 0;

} // namespace

SteadyClock::time_point SteadyClock::now() {
  return time_point(std::chrono::steady_clock::now().time_since_epoch());
}

/// Other processes take part: no order of theirs is known here.
explore::AccessObserver *explore::accessObserver() { return nullptr; }

namespace explored {

void reach(const char *operation, const void *address, const Where &where) {
  turn().mutex.unlock();
  turn().mutex.lock();
  faults::passAccess(operation, address, where);
}

bool keepStore(void *address, uint64_t value, size_t bytes, std::memory_order) {
  return faults::corrupt(address, value, bytes);
}

bool findStore(const void *, uint64_t &) { return false; }

void begin(const void *) {}
void end(const void *) {}
void use(const void *) {}
void drain() {}

bool park(const void *key, SteadyClock::time_point deadline, Sleep, const Where &) {
  do {
    std::chrono::nanoseconds left = deadline - SteadyClock::now();
    if (left <= 0ns)
      return false;
    turn().woken.wait_for(turn().mutex, std::min(left, kLongestSleep));
  } while (!key); // a pause: nobody wakes it
  return true;
}

void wake(const void *) { turn().woken.notify_all(); }

/// All of them: who wakes for nothing looks and sleeps again.
void wakeOne(const void *key) { wake(key); }

void foundUnwoken(const Where &) {} // time passes here whatever the others do

void yield(std::chrono::nanoseconds, const Where &) {
  turn().mutex.unlock();
  std::this_thread::sleep_for(5us);
  turn().mutex.lock();
}

uint32_t spawn(std::function<void()> body) {
  ended.push_back(false);
  auto number = static_cast<uint32_t>(ended.size());
  std::thread([number, body = std::move(body)] {
    std::lock_guard lock(turn().mutex);
    ownNumber = number;
    body();
    ended[number - 1] = true;
    turn().woken.notify_all();
  }).detach();
  return number;
}

bool hasEnded(uint32_t thread) { return ended[thread - 1]; }

uint32_t currentThread() { return ownNumber; }

void *placeOfThisThread(const void *kind) {
  thread_local std::map<const void *, void *> places;
  return &places[kind];
}

const void *endOf(uint32_t) { return &ended; }

} // namespace explored
} // namespace occl
