#include "runtime/daemon/executor.h"

#include <sched.h>

namespace occl::daemon {

namespace {

using namespace std::chrono_literals;

/// How long a stuck executor offers the processor before it leaves it.
constexpr auto kYieldTime = 100us;
/// Every sleep ends by itself, so that deadlines and dead peers are seen.
constexpr auto kLongestSleep = 20ms;
/// Slices of one visit; then the others get their turn.
constexpr uint32_t kQuantumSlices = 64;
/// Visits between two looks at the clock for the watchdog while everything moves.
constexpr uint32_t kVisitsPerTick = 256;

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

} // namespace

void Executor::completeAll() {
  for (OpenInvocation *invocation : complete)
    core.finish(*invocation, StatusCode::Success);
  complete.clear();
  core.runCompletions();
}

bool Executor::visitOne(Patience patience) {
  if (core.fabric->failed()) {
    core.settleFailure();
    return false;
  }
  if (++visitsSinceTick == kVisitsPerTick) {
    visitsSinceTick = 0;
    watchdog.tick();
  }
  scheduler::Visit visit;
  BlockTask *task = core.board.claim(cursor, visit, complete);
  lastQueueLength = task ? visit.queueLength : 0;
  bool moved = !complete.empty();
  if (task)
    moved |= visitClaimed(*task, visit, patience);
  // Callbacks run here, when nothing is claimed: they may wait for other invocations.
  if (!complete.empty())
    completeAll();
  return moved;
}

bool Executor::visitClaimed(BlockTask &task, const scheduler::Visit &visit, Patience patience) {
  Stats::add(core.stats.contextLoads, 1);
  Stats::add(core.stats.queueLengthSum, visit.queueLength);
  Stats::raise(core.stats.maxQueueLength, visit.queueLength);

  VisitOutcome outcome = run(task, visit, patience);
  if (OpenInvocation *ended = core.board.release(task, outcome))
    complete.push_back(ended);
  return outcome.moved || outcome.finished;
}

VisitOutcome Executor::run(BlockTask &task, const scheduler::Visit &visit, Patience patience) {
  OpenInvocation &invocation = *task.invocation;
  interpreter::BlockContext context = task.context;
  VisitOutcome outcome;
  Clock::time_point pollingSince{};
  for (;;) {
    auto step = interpreter::runBlock(invocation.view, task.block, context, target, kQuantumSlices);
    if (step.slices != 0) {
      outcome.moved = true;
      pollingSince = {};
    }
    outcome.finished = step.status == interpreter::StepStatus::Finished;
    if (step.status != interpreter::StepStatus::Blocked)
      break;
    if (step.obstacle.reason == interpreter::BlockReason::Announce) {
      auto bound = bindPeers(invocation, *core.fabric, step.obstacle.peer);
      if (!bound.ok())
        core.fabric->fail(bound.status());
      else if (*bound)
        continue;
    }
    if (patience == Patience::OnePoll || core.fabric->failed() ||
        !keepsPolling(visit, pollingSince)) {
      outcome.obstacle = step.obstacle;
      break;
    }
    relax();
  }
  if (outcome.moved) {
    task.context = context;
    Stats::add(core.stats.contextSaves, 1);
  }
  outcome.instruction = context.instruction;
  return outcome;
}

bool Executor::keepsPolling(const scheduler::Visit &visit, Clock::time_point &pollingSince) {
  auto now = Clock::now();
  if (pollingSince == Clock::time_point{})
    pollingSince = now;
  if (now - pollingSince < core.budget.budgetFor(visit))
    return visit.queueLength > 1 || !core.board.hasSubmissions();
  if (visit.queueLength > 1)
    Stats::add(core.stats.preemptions, 1);
  return false;
}

bool Executor::pass() {
  bool moved = false;
  size_t visits = 0;
  do
    moved |= visitOne(Patience::OnePoll);
  while (++visits < lastQueueLength);
  return moved;
}

bool Executor::passIsOver() {
  if (++unmovedVisits < lastQueueLength)
    return false;
  unmovedVisits = 0;
  return true;
}

bool Executor::yieldsOn() {
  auto now = Clock::now();
  if (yieldingSince == Clock::time_point{})
    yieldingSince = now;
  if (now - yieldingSince >= kYieldTime)
    return false;
  sched_yield();
  return true;
}

void Executor::quit(Doorbell &bell, uint32_t ticket) {
  core.fabric->own().header().waitEdges.confirm();
  Stats::add(core.stats.quits, 1);
  bell.sleep(ticket, kLongestSleep);
  Stats::add(core.stats.restarts, 1);
  watchdog.tick();
}

} // namespace occl::daemon
