// explored.h, answered by the schedule that runs.
#include "runtime/sync/explored.h"
#include "test/explore/explorer/scheduler.h"

#include <utility>

namespace occl {

using explore::Scheduler;

SteadyClock::time_point SteadyClock::now() {
  Scheduler *scheduler = Scheduler::current();
  return scheduler ? scheduler->now() : time_point{};
}

namespace explored {

void reach(const char *operation, const void *address, const Where &where) {
  if (Scheduler *scheduler = Scheduler::current())
    scheduler->reach(operation, address, where);
}

bool keepStore(void *address, uint64_t value, size_t bytes) {
  Scheduler *scheduler = Scheduler::current();
  return scheduler && scheduler->keepStore(address, value, bytes);
}

bool findStore(const void *address, uint64_t &value) {
  Scheduler *scheduler = Scheduler::current();
  return scheduler && scheduler->findStore(address, value);
}

void begin(const void *word) {
  if (Scheduler *scheduler = Scheduler::current())
    scheduler->begin(word);
}

void end(const void *word) {
  if (Scheduler *scheduler = Scheduler::current())
    scheduler->end(word);
}

void use(const void *word) {
  if (Scheduler *scheduler = Scheduler::current())
    scheduler->use(word);
}

void drain() {
  if (Scheduler *scheduler = Scheduler::current())
    scheduler->drain();
}

bool park(const void *key, SteadyClock::time_point deadline, Sleep kind, const Where &where) {
  return Scheduler::current()->park(key, deadline, kind, where);
}

void wake(const void *key) {
  if (Scheduler *scheduler = Scheduler::current())
    scheduler->wake(key);
}

void wakeOne(const void *key) {
  if (Scheduler *scheduler = Scheduler::current())
    scheduler->wakeOne(key);
}

void foundUnwoken(const Where &where) { Scheduler::current()->foundUnwoken(where); }

void yield(std::chrono::nanoseconds time, const Where &where) {
  Scheduler::current()->yield(time, where);
}

uint32_t spawn(std::function<void()> body) { return Scheduler::current()->spawn(std::move(body)); }

bool hasEnded(uint32_t thread) {
  return Scheduler::current()->fiber(thread).state == explore::Fiber::State::Ended;
}

uint32_t currentThread() {
  Scheduler *scheduler = Scheduler::current();
  return scheduler ? scheduler->currentThread() : 0;
}

const void *endOf(uint32_t thread) { return &Scheduler::current()->fiber(thread); }

} // namespace explored
} // namespace occl
