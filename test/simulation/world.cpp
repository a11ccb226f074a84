// Fibers and the queue of what is to happen.
#include "test/simulation/world.h"

#include "test/explore/explorer/fiber.h"
#include "test/simulation/tcp_network.h"

#include <algorithm>
#include <csetjmp>
#include <cstdlib>
#include <ucontext.h>
#include <utility>

namespace occl::simulation {

struct Fiber {
  enum class State : uint8_t { Runnable, Asleep, Ended };

  uint32_t number = 0, machine = 0;
  std::function<void()> body;
  ucontext_t context{}; // where it begins
  jmp_buf left;         // and where it has left off
  bool hasBegun = false;
  std::byte *stack = nullptr;
  State state = State::Runnable;
  const void *key = nullptr; // it sleeps on
  uint64_t sleep = 0;        // the number of its sleep
  bool endedByTime = false;
  std::unordered_map<const void *, void *> places;
};

namespace {

World *active = nullptr;
jmp_buf scheduler;

/// Of threads, without any time passing: more is a loop that waits for nothing.
constexpr uint64_t kMostRuns = 20'000'000;

explore::StackPool &stacks() {
  static explore::StackPool pool;
  return pool;
}

} // namespace

World::World(uint64_t seed) : generator(seed), sockets(std::make_unique<TcpNetwork>(*this)) {
  if (active)
    std::abort();
  active = this;
}

/// What threads of killed processes had on their stacks is never destroyed, as it never is.
World::~World() {
  for (const auto &fiber : fibers)
    stacks().giveBack(fiber->stack);
  active = nullptr;
}

World *World::current() { return active; }

uint32_t World::add(std::function<void()> body) {
  machines.push_back(std::make_unique<Machine>());
  Machine &made = *machines.back();
  made.number = static_cast<uint32_t>(machines.size() - 1);
  ++numLiving;
  addFiber(made.number, std::move(body));
  return made.number;
}

void World::at(Duration when, std::function<void()> action) {
  events.push_back({kBegin + when, numEvents++, std::move(action)});
  std::push_heap(events.begin(), events.end());
}

std::string World::run(Duration most) {
  uint64_t numRuns = 0;
  while (numLiving != 0) {
    // All that can happen now happens before time passes.
    if (!runnable.empty()) {
      runOne();
      if (++numRuns > kMostRuns)
        return "no time passes any more" + describe();
      continue;
    }
    if (events.empty())
      return "all threads sleep and nothing will wake them" + describe();
    std::pop_heap(events.begin(), events.end());
    Event next = std::move(events.back());
    events.pop_back();
    if (next.time - kBegin > most)
      return "not over in time" + describe();
    numRuns = next.time == time ? numRuns : 0;
    time = next.time;
    next.act();
  }
  return "";
}

std::string World::describe() const {
  std::string text = ", at " + std::to_string(std::chrono::duration<double>(sinceBegin()).count()) +
                     " s; processes that have not ended:";
  for (const auto &each : machines)
    if (!each->isOver())
      text += " " + std::to_string(each->number) +
              (each->process == Machine::Process::Stopped ? " (stopped)" : "");
  return text;
}

// --- Threads.

Fiber &World::addFiber(uint32_t machine, std::function<void()> body) {
  auto fiber = std::make_unique<Fiber>();
  fiber->number = static_cast<uint32_t>(fibers.size() + 1); // 0: none of these
  fiber->machine = machine;
  fiber->body = std::move(body);
  fiber->stack = stacks().take();
  getcontext(&fiber->context);
  fiber->context.uc_stack.ss_sp = fiber->stack;
  fiber->context.uc_stack.ss_size = explore::StackPool::kBytes;
  fiber->context.uc_link = nullptr;
  makecontext(&fiber->context, enterFiber, 0);
  machines[machine]->fibers.push_back(fiber.get());
  runnable.push_back(fiber.get());
  fibers.push_back(std::move(fiber));
  return *fibers.back();
}

void World::enterFiber() { active->runFiber(); }

void World::runFiber() {
  Machine &own = *machines[running->machine];
  running->body();
  running->body = nullptr;
  running->state = Fiber::State::Ended;
  wake(running);
  // The process ends with its first thread.
  if (own.fibers.front() == running)
    finish(own, Machine::Process::Ended);
  leave();
  std::abort();
}

/// Back to run().
void World::leave() {
  if (_setjmp(running->left) == 0)
    _longjmp(scheduler, 1);
}

void World::runOne() {
  Fiber &next = *runnable.front();
  runnable.pop_front();
  Machine &own = *machines[next.machine];
  if (own.process == Machine::Process::Stopped)
    return own.held.push_back(&next);
  if (own.process != Machine::Process::Runs)
    return;
  running = &next;
  // Unlike swapcontext() this is no system call.
  if (_setjmp(scheduler) == 0) {
    if (std::exchange(next.hasBegun, true))
      _longjmp(next.left, 1);
    setcontext(&next.context);
  }
  running = nullptr;
}

void World::makeRunnable(Fiber &fiber) {
  fiber.state = Fiber::State::Runnable;
  runnable.push_back(&fiber);
}

bool World::park(const void *key, Time deadline) {
  Fiber &self = *running;
  self.state = Fiber::State::Asleep;
  self.key = key;
  self.endedByTime = false;
  const uint64_t sleep = ++self.sleep;
  if (key)
    sleepers[key].push_back(&self);
  if (deadline != Time::max()) {
    events.push_back({std::max(deadline, time), numEvents++,
                      [fiber = &self, sleep] { active->wakeByTime(*fiber, sleep); }});
    std::push_heap(events.begin(), events.end());
  }
  leave();
  return !self.endedByTime;
}

void World::wakeByTime(Fiber &fiber, uint64_t sleep) {
  if (fiber.state != Fiber::State::Asleep || fiber.sleep != sleep)
    return;
  if (const auto found = sleepers.find(fiber.key); found != sleepers.end()) {
    std::erase(found->second, &fiber);
    if (found->second.empty())
      sleepers.erase(found);
  }
  fiber.endedByTime = true;
  makeRunnable(fiber);
}

void World::wake(const void *key, bool all) {
  const auto found = sleepers.find(key);
  if (found == sleepers.end())
    return;
  std::vector<Fiber *> &asleep = found->second;
  const auto last = all ? asleep.end() : asleep.begin() + 1;
  for (auto each = asleep.begin(); each != last; ++each)
    makeRunnable(**each);
  asleep.erase(asleep.begin(), last);
  if (asleep.empty())
    sleepers.erase(found);
}

uint32_t World::spawn(std::function<void()> body) {
  return addFiber(running->machine, std::move(body)).number;
}

bool World::hasEnded(uint32_t thread) const {
  return fibers[thread - 1]->state == Fiber::State::Ended;
}

uint32_t World::currentThread() const { return running ? running->number : 0; }
uint32_t World::currentMachine() const { return running->machine; }
void *&World::placeOfThisThread(const void *kind) { return running->places[kind]; }
const void *World::endOf(uint32_t thread) const { return fibers[thread - 1].get(); }

// --- What happens to machines.

void World::finish(Machine &own, Machine::Process how) {
  if (own.isOver())
    return;
  own.process = how;
  --numLiving;
  // Its threads are found dead when they should run.
  own.held.clear();
  sockets->closeAllOf(own.number);
}

void World::kill(uint32_t number) { finish(*machines[number], Machine::Process::Killed); }

void World::powerOff(uint32_t number) {
  // What the kernel would say of the end of the process gets nowhere.
  sockets->isolate(number);
  kill(number);
}

void World::stop(uint32_t number) {
  if (machines[number]->process == Machine::Process::Runs)
    machines[number]->process = Machine::Process::Stopped;
}

void World::resume(uint32_t number) {
  Machine &own = *machines[number];
  if (own.process != Machine::Process::Stopped)
    return;
  own.process = Machine::Process::Runs;
  for (Fiber *each : std::exchange(own.held, {}))
    runnable.push_back(each);
}

} // namespace occl::simulation
