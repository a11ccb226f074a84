// An executor: claims a task, takes it further, polls for a while, and releases it.
#include "runtime/sched/executor.h"

#include "runtime/invocation/agreed_standing.h"
#include "runtime/sched/visit_recorder.h"

#include "runtime/sync/thread.h"

#include <algorithm>
#include <cerrno>
#include <new>
#include <string>
#include <system_error>
#include <utility>

namespace occl::daemon {

namespace {

using namespace std::chrono_literals;

/// Every sleep ends by itself, so that deadlines and dead peers are seen.
constexpr auto kLongestSleep = 20ms;
/// How long a submission polls, where polling is wanted at all: about what waking a thread takes.
/// More than the ranks' threads differ by that run callbacks in turn with their program; or the
/// workers, once awake, keep them apart.
constexpr std::chrono::nanoseconds kAtSubmission = 4us;
/// Slices of one visit; then the others get their turn.
constexpr uint32_t kQuantumSlices = 64;
/// Work that took so long, while other tasks wait, is worth waking another executor for.
constexpr uint64_t kLongVisit = 50000; // nanoseconds
/// Visits between two looks at the clock for the watchdog while everything moves.
constexpr uint32_t kVisitsPerTick = 256;

/// Memory of a peer cannot be read, for the reason that is errno's.
void failFor(Core &core, const OpenInvocation &invocation, uint32_t peer) {
  const int error = errno; // before anything else sets it
  if (core.fabric->spreadFailureOf(peer))
    return;
  if (invocation.operation && !invocation.operation->error().ok())
    return core.fabric->fail(invocation.operation->error());
  core.fabric->fail({StatusCode::PeerFailed,
                     invocation.subject() + ": the buffers of rank " + std::to_string(peer) +
                         " cannot be read (" + std::generic_category().message(error) +
                         "): its process is gone, or it has released them before they were read"});
}

uint32_t waitingInstruction(const OpenInvocation &invocation, uint32_t block,
                            const interpreter::BlockContext &context,
                            const interpreter::Obstacle &obstacle) {
  return invocation.operation ? obstacle.what
                              : interpreter::waitingInstruction(*invocation.view.program, block,
                                                                context.instruction, obstacle);
}

} // namespace

/// Nothing is claimed: callbacks run here, and may wait for other invocations.
void Executor::complete(OpenInvocation &invocation) {
  Core &core = *invocation.core;
  const bool hasCallback = invocation.hasCallback;
  core.finish(invocation, StatusCode::Success);
  if (!hasCallback)
    return; // nothing has pinned the core's place: it may be gone
  core.runCallbacks();
  core.place.unpin();
}

bool Executor::visitOne(Patience patience, scheduler::Round &round) {
  // While everything moves no executor is idle, so rounds of the watchdog come from here.
  if (++visitsSinceTick == kVisitsPerTick) {
    visitsSinceTick = 0;
    device.tick();
  }
  scheduler::Visit visit;
  const Ticks now = ticks();
  BlockTask *task = device.board.claim(visit, completeAtOnce, now, round);
  bool moved = !completeAtOnce.isEmpty();
  if (task) {
    ++claims;
    moved |= visitClaimed(*task, visit, patience, now);
  }
  // Nothing is claimed here: callbacks of these may wait for other invocations.
  while (OpenInvocation *next = completeAtOnce.take())
    complete(*next);
  return moved;
}

bool Executor::visitClaimed(BlockTask &task, const scheduler::Visit &visit, Patience patience,
                            Ticks now) {
  Core &core = *task.invocation->core;
  VisitOutcome outcome;
  // Accesses to buffers of others are counted, so that their owner can wait for them.
  const bool accessesOthers = task.invocation->collective->direct.byThisRank;
  outcome.failed = accessesOthers ? !core.fabric->beginAccess() : core.fabric->failed();
  const auto begin = device.options.preemption ? Clock::time_point{} : Clock::now();
  if (!outcome.failed) {
    try {
      outcome = run(core, task, visit, patience, now);
    } catch (const std::bad_alloc &) { // nobody but the communicator could be told
      core.fabric->fail(outOfMemory());
      outcome.failed = true;
    }
    if (accessesOthers)
      core.fabric->endAccess();
  }
  outcome.begin = begin;
  // Alone in the queue it stands well anywhere. Without preemption it always is, to its executor.
  if (visit.queueLength > task.invocation->tasks.size() && !outcome.failed) {
    auto standing = agreedStanding(*task.invocation, *core.fabric);
    if (!standing && !outcome.moved)
      standing = inheritedStanding(*task.invocation, *core.fabric);
    if (standing)
      device.board.place(*task.invocation, *standing);
  }
  // With the release anybody may claim the task.
  Released released = device.board.release(task, outcome);
  leftOut |= released.leftOut;
  if (released.othersWait && outcome.moved)
    callWorkers(now);
  if (released.complete)
    complete(*released.complete);
  if (released.mustSettle) {
    core.settleFailure();
    core.place.unpin();
  }
  return outcome.moved || outcome.finished;
}

void Executor::runClaimed(BlockTask &task, const scheduler::Visit &visit) {
  visitClaimed(task, visit, Patience::Alone, task.invocation->times.submitted);
  offers.reset();
}

void Executor::goOnClaimed(BlockTask &task, Ticks waitingSince) {
  const scheduler::Visit alone;
  visitClaimed(task, alone, Patience::Begun, waitingSince);
}

void Executor::beginClaimed(BlockTask &task, const scheduler::Visit &visit) {
  visitClaimed(task, visit, Patience::First, task.invocation->times.submitted);
}

/// An invocation whose peers have rings does not wait for announcements. Once it has waited for
/// data, it looks whether there will be any.
void Executor::confirm(Core &core, OpenInvocation &invocation, interpreter::Obstacle &obstacle) {
  auto announced = confirmPeer(invocation, *core.fabric, obstacle.peer);
  if (!announced.ok())
    core.fabric->fail(announced.status());
  else if (!*announced)
    obstacle.reason = interpreter::BlockReason::Announce;
}

VisitOutcome Executor::run(Core &core, BlockTask &task, const scheduler::Visit &visit,
                           Patience patience, Ticks now) {
  OpenInvocation &invocation = *task.invocation;
  interpreter::BlockContext context = task.context;
  VisitOutcome outcome;
  outcome.moved = patience == Patience::Begun && (context.tile | context.instruction) != 0;
  Polling polling;
  VisitRecorder recorder(core, task, visit, now);
  interpreter::Obstacle recorded; // polling again finds mostly the same one
  bool mustRing = patience == Patience::Alone || patience == Patience::First;
  uint32_t looksWhileIdle = 0;
  for (;; recorder.lookAgain()) {
    auto step = recorder.run(context, target, kQuantumSlices);
    if (step.status == interpreter::StepStatus::PeerLost) {
      failFor(core, invocation, step.obstacle.peer);
      outcome.failed = true;
    }
    if (step.slices != 0) {
      outcome.moved = true;
      polling = {};
      recorded = {};
    }
    outcome.finished = step.status == interpreter::StepStatus::Finished;
    // The announcement came before the first step. The readers of one in the ring need no more than
    // its data, with which they were rung.
    const bool wereRung = step.slices != 0 && invocation.collective->firstStepRingsReaders;
    if (std::exchange(mustRing, false) && !wereRung && !(outcome.finished && invocation.usesRing))
      core.ringReaders(*invocation.collective);
    outcome.instruction = context.instruction;
    if (step.status != interpreter::StepStatus::Blocked)
      break;
    // Blocked: look for the peer's announcement if that is missing, else poll.
    const uint32_t waiting = waitingInstruction(invocation, task.block, context, step.obstacle);
    if (step.obstacle.reason == interpreter::BlockReason::Announce) {
      auto bound = bindPeers(invocation, *core.fabric, step.obstacle.peer);
      if (!bound.ok())
        core.fabric->fail({bound.status().code(),
                           bound.status().message() + "; " +
                               describeObstacle(invocation, task.block, waiting, step.obstacle)});
      else if (*bound) {
        recorder.sawAnnouncement();
        continue;
      }
    }
    // Nobody polls for what the program has to do.
    const bool leaves = core.fabric->failed() || interpreter::isPartition(step.obstacle) ||
                        !staysWith(visit, patience, polling);
    // However busy the others keep this executor: the peer's ring may be another one by now.
    const bool inVain = leaves || (isIdle() && looksWhileIdle++ == 1);
    if (inVain && invocation.collective->mayUseRing &&
        step.obstacle.reason == interpreter::BlockReason::Data)
      confirm(core, invocation, step.obstacle);
    if (step.obstacle != recorded) {
      recorder.blocked(waitFor(step.obstacle, waiting, invocation, *core.fabric));
      recorded = step.obstacle;
    }
    if (leaves) {
      outcome.failed = core.fabric->failed();
      outcome.preempted = patience == Patience::Budget && visit.queueLength > 1;
      outcome.obstacle = step.obstacle;
      outcome.instruction = waiting;
      break;
    }
    isIdle() ? yieldProcessor() : relax();
  }
  if (outcome.moved)
    task.context = context;
  recorder.end(outcome);
  return outcome;
}

/// Whether to look once more at what did not move.
bool Executor::staysWith(const scheduler::Visit &visit, Patience patience, Polling &polling) {
  if (patience == Patience::OnePoll || patience == Patience::Begun)
    return false;
  if (!isIdle() && keepsPolling(visit, patience, polling))
    return true;
  return patience == Patience::Alone && !device.board.hasSubmissions() && offers.goOn();
}

bool Executor::keepsPolling(const scheduler::Visit &visit, Patience patience,
                            Polling &polling) const {
  if (visit.queueLength == 1 && device.board.hasSubmissions())
    return false;
  return polling.goesOn([&] {
    const std::chrono::nanoseconds budget = device.budgetOf(visit);
    return patience == Patience::First && budget.count() != 0 ? kAtSubmission : budget;
  });
}

bool Executor::lookAtAll() {
  bool moved = false;
  leftOut = false;
  scheduler::Round all;
  do
    moved |= visitOne(Patience::OnePoll, all);
  while (!all.isOver);
  return moved || leftOut;
}

void Executor::lookOnce(Device &device) {
  if (Executor(device).lookAtAll())
    device.handOver();
}

/// What is at hand is more than one executor does in the time that it takes to wake another one.
void Executor::callWorkers(Ticks visitBegin) {
  if (device.resting.load(std::memory_order_relaxed) != 0 &&
      device.scale.nanoseconds(ticks() - visitBegin) >= kLongVisit)
    device.callWorkers();
}

void Executor::quit(uint32_t ticket) {
  DeviceStats::add(device.stats.quits, 1);
  device.bell.sleep(ticket, kLongestSleep);
  DeviceStats::add(device.stats.restarts, 1);
  device.tick();
}

} // namespace occl::daemon
