#include "test/explore/explorer/scheduler.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace occl::explore {

namespace {

using namespace std::chrono_literals;

constexpr auto kTimeOfAStep = 10ns;
constexpr auto kNever = SteadyClock::time_point::max();

} // namespace

Scheduler *Scheduler::active = nullptr, *Scheduler::observing = nullptr;

Scheduler::Scheduler(const Settings &settings, Strategy &strategy)
    : settings(settings), strategy(strategy) {}

Scheduler::~Scheduler() = default;

std::string Scheduler::run(const std::function<void()> &body, bool looksForRaces) {
  fibers.clear();
  steps = numKeeping = 0;
  chooses = !settings.fromMark;
  gone.clear();
  time = SteadyClock::time_point(1s);
  defect.clear();
  lastSteps.clear();
  seesRaces = looksForRaces;
  if (seesRaces)
    races.begin();
  active = this;
  running = &add(body);
  running->hasBegun = true;
  swapcontext(&outside, &running->context);
  active = observing = nullptr;
  // The stacks of a schedule with a defect are still full of objects: they stay as they are.
  if (defect.empty())
    for (auto &fiber : fibers)
      stacks.giveBack(fiber->stack);
  return defect;
}

Fiber &Scheduler::add(std::function<void()> body) {
  auto fiber = std::make_unique<Fiber>();
  fiber->number = static_cast<uint32_t>(fibers.size());
  fiber->body = std::move(body);
  fiber->stack = stacks.take();
  getcontext(&fiber->context);
  fiber->context.uc_stack.ss_sp = fiber->stack;
  fiber->context.uc_stack.ss_size = StackPool::kBytes;
  fiber->context.uc_link = nullptr;
  makecontext(&fiber->context, enterFiber, 0);
  fibers.push_back(std::move(fiber));
  strategy.started(fibers.back()->number);
  return *fibers.back();
}

void Scheduler::enterFiber() { active->runFiber(); }

void Scheduler::runFiber() {
  observing = seesRaces ? this : nullptr;
  running->body();
  observing = nullptr;
  reach("end", nullptr, explored::Where::current()); // while what it stored last may be invisible
  drain();
  running->state = Fiber::State::Ended;
  if (running->number != 0) {
    wake(running);
    choose(Occasion::Leave); // does not return
  }
  for (auto &fiber : fibers)
    if (fiber->state != Fiber::State::Ended)
      fail("thread " + std::to_string(fiber->number) + " is left when the first has ended");
  setcontext(&outside);
}

void Scheduler::fail(const std::string &text) {
  defect = text;
  setcontext(&outside);
  std::abort();
}

void Scheduler::step(const char *operation, const void *address, const explored::Where &where) {
  time += kTimeOfAStep;
  lastSteps.add(running->number, operation, address, where, time);
  if (++steps > settings.mostSteps)
    fail("no end after " + std::to_string(steps) + " steps");
  if (numKeeping != 0)
    for (auto &fiber : fibers)
      makeVisible(*fiber, steps);
}

void Scheduler::reach(const char *operation, const void *address, const explored::Where &where) {
  step(operation, address, where);
  choose(Occasion::Access);
}

void Scheduler::end(const void *word, const void *place) {
  if (seesRaces)
    access(word, 1, AccessKind::Write, place);
  gone.insert(word);
}

void Scheduler::use(const void *word) {
  if (gone.contains(word))
    fail("a word is accessed that is gone");
}

bool Scheduler::keepStore(void *address, uint64_t value, size_t bytes, std::memory_order order,
                          const void *place) {
  uint64_t delay = strategy.storeDelay();
  std::deque<KeptStore> &kept = running->kept;
  if (delay == 0 && kept.empty())
    return false;
  VectorClock released;
  if (seesRaces) {
    access(address, bytes, AccessKind::AtomicWrite, place);
    released = races.release(running->number, order);
  }
  numKeeping += kept.empty();
  uint64_t due = steps + delay;
  kept.push_back({address, value, bytes, kept.empty() ? due : std::max(due, kept.back().due),
                  std::move(released)});
  return true;
}

bool Scheduler::findStore(const void *address, uint64_t &value) const {
  const std::deque<KeptStore> &kept = running->kept;
  auto newest = std::find_if(kept.rbegin(), kept.rend(),
                             [&](const KeptStore &store) { return store.address == address; });
  if (newest == kept.rend())
    return false;
  value = newest->value;
  return true;
}

void Scheduler::makeVisible(Fiber &fiber, uint64_t until) {
  if (fiber.kept.empty())
    return;
  while (!fiber.kept.empty() && fiber.kept.front().due <= until) {
    KeptStore &store = fiber.kept.front();
    std::memcpy(store.address, &store.value, store.bytes);
    if (seesRaces)
      races.publish(store.address, std::move(store.released));
    fiber.kept.pop_front();
  }
  numKeeping -= fiber.kept.empty();
}

bool Scheduler::park(const void *key, SteadyClock::time_point deadline, explored::Sleep kind,
                     const explored::Where &where) {
  step("sleep", key, where);
  drain();
  running->state = Fiber::State::Asleep;
  running->key = key;
  running->deadline = deadline;
  running->kind = kind;
  running->where = where;
  running->endedByTime = running->endedAlone = false;
  choose(Occasion::Leave);
  return !running->endedByTime;
}

void Scheduler::wake(const void *key) {
  for (auto &fiber : fibers)
    if (fiber->state == Fiber::State::Asleep && fiber->key == key)
      fiber->state = Fiber::State::Runnable;
}

void Scheduler::wakeOne(const void *key) {
  std::vector<uint32_t> asleep;
  for (auto &fiber : fibers)
    if (fiber->state == Fiber::State::Asleep && fiber->key == key)
      asleep.push_back(fiber->number);
  if (asleep.empty())
    return;
  const uint32_t chosen =
      chooses ? strategy.choose(Occasion::Wake, running->number, asleep) : asleep[0];
  fibers[chosen]->state = Fiber::State::Runnable;
}

void Scheduler::foundUnwoken(const explored::Where &where) {
  if (running->endedAlone && settings.lostWakeUps)
    fail("all threads slept, and one of them, since " + describe(where) +
         ", though what it waits for was there: its wake-up was lost");
}

void Scheduler::yield(std::chrono::nanoseconds duration, const explored::Where &where) {
  step("yield", nullptr, where);
  drain();
  time += duration;
  choose(Occasion::Yield);
}

uint32_t Scheduler::spawn(std::function<void()> body) {
  drain();
  uint32_t number = add(std::move(body)).number;
  if (seesRaces)
    races.start(running->number, number);
  reach("start", nullptr, explored::Where::current());
  return number;
}

bool Scheduler::hasEnded(uint32_t thread) {
  if (fibers[thread]->state != Fiber::State::Ended)
    return false;
  if (seesRaces)
    races.join(running->number, thread);
  return true;
}

void Scheduler::endOverdueSleeps() {
  for (auto &fiber : fibers)
    if (fiber->state == Fiber::State::Asleep && fiber->deadline <= time &&
        (fiber->kind == explored::Sleep::Timed || !settings.lostWakeUps)) {
      fiber->state = Fiber::State::Runnable;
      fiber->endedByTime = true;
    }
}

void Scheduler::collectRunnable() {
  runnable.clear();
  for (auto &fiber : fibers)
    if (fiber->state == Fiber::State::Runnable)
      runnable.push_back(fiber->number);
}

void Scheduler::choose(Occasion occasion) {
  endOverdueSleeps();
  collectRunnable();
  if (runnable.empty())
    awaitSomebody();
  if (!chooses && occasion == Occasion::Access)
    return;
  if (!chooses && occasion == Occasion::Leave)
    runnable.resize(1);
  Fiber &next = *fibers[strategy.choose(occasion, running->number, runnable)];
  if (&next != running)
    switchTo(next);
}

void Scheduler::awaitSomebody() {
  SteadyClock::time_point first = kNever;
  for (auto &fiber : fibers)
    if (fiber->state == Fiber::State::Asleep &&
        (fiber->kind == explored::Sleep::Timed || !settings.lostWakeUps))
      first = std::min(first, fiber->deadline);
  if (first == kNever)
    fail("all threads sleep and none will be woken:" + describeSleepers());
  time = first;
  endOverdueSleeps();
  collectRunnable();
  if (runnable.size() == 1)
    fibers[runnable[0]]->endedAlone = true;
}

std::string Scheduler::describeSleepers() const {
  std::string text;
  for (auto &fiber : fibers)
    if (fiber->state == Fiber::State::Asleep)
      text += "\n  thread " + std::to_string(fiber->number) + " since " + describe(fiber->where) +
              (fiber->deadline == kNever ? "" : ", whose wake-up was lost");
  return text;
}

void Scheduler::switchTo(Fiber &next) {
  Fiber *before = std::exchange(running, &next);
  // Unlike swapcontext() this is no system call.
  if (_setjmp(before->left) != 0)
    return;
  if (std::exchange(next.hasBegun, true))
    _longjmp(next.left, 1);
  setcontext(&next.context);
}

AccessObserver *accessObserver() { return Scheduler::observed(); }

void Scheduler::access(const void *address, size_t bytes, AccessKind kind, const void *place) {
  const Unobserved own;
  if (const Race *race = races.access(running->number, address, bytes, kind, place))
    fail(race->text());
}

void Scheduler::giveBack(const void *block, size_t bytes, const void *place) {
  const Unobserved own;
  if (const Race *race = races.giveBack(running->number, block, bytes, place))
    fail(race->text());
}

void Scheduler::load(const void *word, size_t bytes, std::memory_order order, const void *place) {
  const Unobserved own;
  access(word, bytes, AccessKind::AtomicRead, place);
  races.acquire(running->number, word, order);
}

void Scheduler::store(const void *word, size_t bytes, std::memory_order order, const void *place) {
  const Unobserved own;
  access(word, bytes, AccessKind::AtomicWrite, place);
  races.publish(word, races.release(running->number, order));
}

void Scheduler::update(const void *word, size_t bytes, std::memory_order order, const void *place) {
  const Unobserved own;
  access(word, bytes, AccessKind::AtomicWrite, place);
  races.update(running->number, word, order);
}

void Scheduler::fence(std::memory_order order) {
  const Unobserved own;
  races.fence(running->number, order);
}

void Scheduler::forget(const void *address, size_t bytes) {
  const Unobserved own;
  if (seesRaces)
    races.forget(address, bytes);
}

void Scheduler::acquire(const void *word) {
  const Unobserved own;
  races.acquire(running->number, word, std::memory_order_acquire);
}

void Scheduler::release(const void *word) {
  const Unobserved own;
  races.publish(word, races.release(running->number, std::memory_order_release));
}

} // namespace occl::explore
