// explored.h, answered by the schedule that runs.
#include "runtime/sync/explored.h"
#include "test/explore/explorer/scheduler.h"

#include <map>
#include <utility>

namespace occl {

using explore::Scheduler;
using explore::Unobserved;

SteadyClock::time_point SteadyClock::now() {
  Scheduler *scheduler = Scheduler::current();
  return scheduler ? scheduler->now() : time_point{};
}

namespace explored {

void reach(const char *operation, const void *address, const Where &where) {
  const Unobserved own;
  if (Scheduler *scheduler = Scheduler::current())
    scheduler->reach(operation, address, where);
}

bool keepStore(void *address, uint64_t value, size_t bytes, std::memory_order order) {
  const Unobserved own;
  Scheduler *scheduler = Scheduler::current();
  return scheduler &&
         scheduler->keepStore(address, value, bytes, order, __builtin_return_address(0));
}

bool findStore(const void *address, uint64_t &value) {
  const Unobserved own;
  Scheduler *scheduler = Scheduler::current();
  return scheduler && scheduler->findStore(address, value);
}

void begin(const void *word) {
  const Unobserved own;
  if (Scheduler *scheduler = Scheduler::current())
    scheduler->begin(word);
}

void end(const void *word) {
  const Unobserved own;
  if (Scheduler *scheduler = Scheduler::current())
    scheduler->end(word, __builtin_return_address(0));
}

void use(const void *word) {
  const Unobserved own;
  if (Scheduler *scheduler = Scheduler::current())
    scheduler->use(word);
}

void drain() {
  const Unobserved own;
  if (Scheduler *scheduler = Scheduler::current())
    scheduler->drain();
}

bool park(const void *key, SteadyClock::time_point deadline, Sleep kind, const Where &where) {
  const Unobserved own;
  return Scheduler::current()->park(key, deadline, kind, where);
}

void wake(const void *key) {
  const Unobserved own;
  if (Scheduler *scheduler = Scheduler::current())
    scheduler->wake(key);
}

void wakeOne(const void *key) {
  const Unobserved own;
  if (Scheduler *scheduler = Scheduler::current())
    scheduler->wakeOne(key);
}

void foundUnwoken(const Where &where) {
  const Unobserved own;
  Scheduler::current()->foundUnwoken(where);
}

void yield(std::chrono::nanoseconds time, const Where &where) {
  const Unobserved own;
  Scheduler::current()->yield(time, where);
}

uint32_t spawn(std::function<void()> body) {
  const Unobserved own;
  return Scheduler::current()->spawn(std::move(body));
}

bool hasEnded(uint32_t thread) {
  const Unobserved own;
  return Scheduler::current()->hasEnded(thread);
}

uint32_t currentThread() {
  Scheduler *scheduler = Scheduler::current();
  return scheduler ? scheduler->currentThread() : 0;
}

void *placeOfThisThread(const void *kind) {
  const Unobserved own;
  static std::map<std::pair<const void *, uint32_t>, void *> pointers;
  return &pointers[{kind, currentThread()}];
}

const void *endOf(uint32_t thread) { return &Scheduler::current()->fiber(thread); }

} // namespace explored
} // namespace occl
