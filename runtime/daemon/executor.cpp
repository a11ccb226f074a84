#include "runtime/daemon/executor.h"

#include "runtime/daemon/agreed_standing.h"
#include "runtime/daemon/visit_recorder.h"

#include "runtime/base/thread.h"

#include <cerrno>
#include <cstring>
#include <string>

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

Status lostPeer(const OpenInvocation &invocation, uint32_t peer) {
  return {StatusCode::PeerFailed, "collective " + invocation.describe() + ": the buffers of rank " +
                                      std::to_string(peer) + " cannot be read (" +
                                      std::strerror(errno) +
                                      "): its process is gone, or it has released them before "
                                      "the collective was complete"};
}

} // namespace

void Executor::completeAll() {
  for (OpenInvocation *invocation : complete) {
    completing.push_back(invocation->core);
    completing.back()->finish(*invocation, StatusCode::Success);
  }
  complete.clear();
  for (Core *core : completing) {
    core->runCallbacks();
    core->place.unpin();
  }
  completing.clear();
}

bool Executor::visitOne(Patience patience) {
  if (++visitsSinceTick == kVisitsPerTick) {
    visitsSinceTick = 0;
    device.tick();
  }
  scheduler::Visit visit;
  BlockTask *task = device.board.claim(visit, complete);
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
  Core &core = *task.invocation->core;
  VisitOutcome outcome;
  outcome.failed = core.fabric->failed();
  if (!outcome.failed)
    outcome = run(core, task, visit, patience);
  // Alone in the queue it stands well anywhere. Without preemption it always is, to its executor.
  if (visit.queueLength > task.invocation->tasks.size() && !outcome.failed)
    if (auto standing = agreedStanding(*task.invocation, *core.fabric))
      device.board.place(*task.invocation, *standing);
  Released released = device.board.release(task, outcome);
  if (released.complete)
    complete.push_back(released.complete);
  if (released.mustSettle) {
    core.settleFailure();
    core.place.unpin();
  }
  return outcome.moved || outcome.finished;
}

/// A resident invocation does not wait for announcements. Once it has waited for data, it looks
/// whether there will be any.
void Executor::confirm(Core &core, OpenInvocation &invocation, interpreter::Obstacle &obstacle) {
  auto announced = confirmPeer(invocation, *core.fabric, obstacle.peer);
  if (!announced.ok())
    core.fabric->fail(announced.status());
  else if (!*announced)
    obstacle.reason = interpreter::BlockReason::Announce;
}

VisitOutcome Executor::run(Core &core, BlockTask &task, const scheduler::Visit &visit,
                           Patience patience) {
  OpenInvocation &invocation = *task.invocation;
  interpreter::BlockContext context = task.context;
  VisitOutcome outcome;
  Clock::time_point pollingSince{};
  VisitRecorder recorder(core, task, visit);
  interpreter::Obstacle recorded; // polling again finds mostly the same one
  for (;; recorder.lookAgain()) {
    auto step = recorder.run(context, target, kQuantumSlices);
    if (step.slices != 0) {
      outcome.moved = true;
      pollingSince = {};
      recorded = {};
    }
    outcome.finished = step.status == interpreter::StepStatus::Finished;
    if (step.status == interpreter::StepStatus::PeerLost) {
      core.fabric->fail(lostPeer(invocation, step.obstacle.peer));
      outcome.failed = true;
    }
    if (step.status != interpreter::StepStatus::Blocked)
      break;
    if (step.obstacle.reason == interpreter::BlockReason::Announce) {
      auto bound = bindPeers(invocation, *core.fabric, step.obstacle.peer);
      if (!bound.ok())
        core.fabric->fail(
            {bound.status().code(),
             bound.status().message() + "; " +
                 describeObstacle(invocation, task.block, context.instruction, step.obstacle)});
      else if (*bound) {
        recorder.sawAnnouncement();
        continue;
      }
    }
    if (invocation.isResident && patience == Patience::OnePoll &&
        step.obstacle.reason == interpreter::BlockReason::Data)
      confirm(core, invocation, step.obstacle);
    if (step.obstacle != recorded) {
      recorder.blocked(waitFor(step.obstacle, context.instruction, invocation, *core.fabric));
      recorded = step.obstacle;
    }
    outcome.failed = core.fabric->failed();
    if (patience == Patience::OnePoll || outcome.failed || !keepsPolling(visit, pollingSince)) {
      outcome.preempted = patience == Patience::Budget && visit.queueLength > 1;
      outcome.obstacle = step.obstacle;
      break;
    }
    relax();
  }
  if (outcome.moved)
    task.context = context;
  outcome.instruction = context.instruction;
  recorder.end(outcome);
  return outcome;
}

bool Executor::keepsPolling(const scheduler::Visit &visit, Clock::time_point &pollingSince) {
  auto now = Clock::now();
  if (pollingSince == Clock::time_point{})
    pollingSince = now;
  return now - pollingSince < device.budget().budgetFor(visit) &&
         (visit.queueLength > 1 || !device.board.hasSubmissions());
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
  yieldProcessor();
  return true;
}

void Executor::quit(uint32_t ticket) {
  device.confirmWaits();
  DeviceStats::add(device.stats.quits, 1);
  device.bell.sleep(ticket, kLongestSleep);
  DeviceStats::add(device.stats.restarts, 1);
  device.tick();
}

} // namespace occl::daemon
