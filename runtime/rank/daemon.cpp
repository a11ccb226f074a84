// A communicator's rank: its calls, transfers, requests, and its end.
#include "runtime/rank/daemon.h"

#include "runtime/sched/executor.h"
#include "runtime/sched/inside_wait.h"
#include "runtime/sched/lane_run.h"

#include "runtime/sync/atomic.h"
#include "runtime/sync/deadline.h"
#include "runtime/sync/drain_patience.h"
#include "runtime/sync/thread.h"

#include <utility>

namespace occl::daemon {

namespace {

/// In destroy, for what has a deadline to be ended by it.
constexpr std::chrono::milliseconds kDrainGrace = std::chrono::seconds(1);

} // namespace

Daemon::Daemon(std::shared_ptr<Device> device, std::unique_ptr<Fabric> fabric,
               const Options &options)
    : core(std::move(device), std::move(fabric), options), admission(core), transfers(core),
      partitioned(core), collectives(core, admission, *this),
      watchdog(
          core, [this](uint64_t id) { return admission.lookUp(id); },
          [this] {
            admission.tidy();
            partitioned.tidy();
            collectives.beginDeferred();
          }),
      splitter(*core.fabric), shrinker(*core.fabric), rankInsight(core, admission, watchdog) {
  core.nameOf = [this](uint64_t id) { return admission.lookUp(id).name; };
  // From here on executors and the watchdog's rounds use this object.
  core.device->attach(core, watchdog);
}

/// Where deadlines end nothing, time does.
void Daemon::drain() {
  InsideWait inside(*core.device);
  Executor executor(*core.device);
  const auto patience = drainPatience({core.options.timeout}, kDrainGrace);
  Deadline deadline(patience);
  // Work goes on here, as peers may wait for this rank's part of it.
  executor.runUntil([&] { return !isBusy() || deadline.passed(); });
  if (isBusy()) {
    core.fabric->failUnless([&]() -> Status {
      return {StatusCode::Aborted, "rank " + std::to_string(core.fabric->rank()) +
                                       " has destroyed its communicator, and what it had in flight "
                                       "has not ended within " +
                                       std::to_string(patience.count()) + " ms"};
    });
    core.settleFailure();
  }
  // After a failure all that is open ends as soon as nobody has claimed a task of it.
  executor.runUntil([&] { return !isBusy(); });
}

Daemon::~Daemon() {
  drain();
  core.device->detach(core);
  core.fabric->leave();
}

StatusOr<RequestId> Daemon::submit(const Submission &submission) {
  const Callback &callback = submission.callback;
  if (core.fabric->failed())
    return failure();
  auto admitted = admission.submit(submission);
  if (!admitted.ok())
    return admitted.status();
  // The caller has claimed its one task and makes the first visit.
  if (admitted->claimed) {
    begin(*admitted);
    return admitted->request;
  }
  // The admission has ended with a fence: what it published and what is read here are in order.
  if (core.fabric->failed())
    core.settleFailure();
  core.device->wakeFor(static_cast<bool>(callback));
  return admitted->request;
}

/// Who submits makes the first visit; the rest, if there is any, is the workers'.
void Daemon::begin(const Admitted &admitted) {
  Device &device = *core.device;
  Executor(device).beginClaimed(*admitted.claimed, admitted.visit);
  if (!device.submissions.areOpen())
    return;
  // Whoever has looked meanwhile has found it claimed, and may be asleep.
  threadFence(std::memory_order_seq_cst);
  device.wakeFor(true);
}

Status Daemon::run(const Submission &submission) {
  if (core.fabric->failed())
    return failure();
  // The lane is for small calls while nothing else is open.
  if (OpenInvocation *invocation = admission.enterLane(submission)) {
    LaneRun lane(*invocation);
    return lane.run() ? Status() : goOn(*invocation, lane);
  }
  Device &device = *core.device;
  InsideWait inside(*core.device);
  // Otherwise it goes on the board, and this thread executes until it has ended.
  auto admitted = admission.submit(submission);
  if (!admitted.ok())
    return admitted.status();
  Executor executor(device);
  beginOwn(executor, admitted->claimed, admitted->visit);
  OwnResult &result = admitted->invocation->own;
  executor.runUntil([&] { return result.isThere(); });
  return result.take() == StatusCode::Success ? Status() : failure();
}

/// Of what its caller waits for: with the task, or as all do.
void Daemon::beginOwn(Executor &executor, BlockTask *claimed, const scheduler::Visit &visit) {
  if (claimed)
    return executor.runClaimed(*claimed, visit);
  if (core.fabric->failed())
    core.settleFailure();
  core.device->bell.ringFenced(); // executors that are stuck with something else
}

Status Daemon::run(std::span<const Transfer> given) {
  if (core.fabric->failed())
    return failure();
  Exchange exchange;
  // A thread inside a wait is counted first, so that no worker is woken for its call.
  InsideWait inside(*core.device);
  scheduler::Visit visit;
  BlockTask *claimed = transfers.begin(exchange, given, &visit);
  runToEnd(exchange, claimed, visit);
  return exchange.result() == StatusCode::Success ? Status() : failure();
}

/// The exchange is on the stack, where executors access it: nothing here throws.
void Daemon::runToEnd(const Exchange &exchange, BlockTask *claimed,
                      const scheduler::Visit &visit) noexcept {
  Executor executor(*core.device);
  beginOwn(executor, claimed, visit);
  executor.runUntil([&] { return exchange.isOver(); });
}

void Daemon::prepare(Exchange &exchange, std::span<const Transfer> given) {
  transfers.prepare(exchange, given);
}

bool Daemon::begin(Exchange &exchange) noexcept {
  if (core.fabric->failed())
    return false;
  transfers.begin(exchange);
  // A failure since the check may have been settled without these transfers.
  if (core.fabric->failed())
    core.settleFailure();
  core.device->wakeFor(true); // this thread may be waiting for another communicator
  return true;
}

bool Daemon::end(Exchange &exchange) noexcept {
  InsideWait inside(*core.device);
  Executor(*core.device).runUntil([&] { return exchange.isOver(); });
  return exchange.result() == StatusCode::Success;
}

StatusOr<RequestId> Daemon::start(std::span<const Transfer> given, const Callback &callback,
                                  bool callbackNeverBlocks) {
  if (core.fabric->failed())
    return failure();
  auto started = transfers.start(given, callback, callbackNeverBlocks);
  if (!started.ok())
    return started;
  // A failure since the check may have been settled without these transfers.
  if (core.fabric->failed())
    core.settleFailure();
  core.device->wakeFor(static_cast<bool>(callback));
  return started;
}

Status Daemon::call(Submission &call, const SpecOf &specOf) {
  Status ended = run(call);
  const auto mustGoOn = [&] {
    return ended.code() == StatusCode::InProgress || ended.code() == StatusCode::Again;
  };
  if (!mustGoOn())
    return ended;
  // Learn the shape, or wait for room, and try again.
  RoomWait room(core, admission, call);
  while (mustGoOn()) {
    ended = ended.code() == StatusCode::InProgress ? learnShape(call, specOf)
                                                   : awaitRoom(room, call, ended);
    if (ended.ok())
      ended = run(call);
  }
  return ended;
}

StatusOr<RequestId> Daemon::start(const Submission &call, const SpecOf &specOf) {
  for (;;) {
    auto submitted = submit(call);
    if (submitted.ok())
      return submitted;
    // No room: if a rank is gone that would have to make some, waiting is in vain.
    if (submitted.status().code() == StatusCode::Again)
      if (Status holders = admission.checkHolders(call, false); !holders.ok()) {
        fail(holders);
        return failure();
      }
    if (submitted.status().code() != StatusCode::InProgress)
      return submitted;
    if (Status known = learnShape(call, specOf); !known.ok())
      return known;
  }
}

Status Daemon::learnShape(const Submission &call, const SpecOf &specOf) {
  auto spec = specOf();
  if (!spec.ok())
    return spec.status();
  return admission.learnShape(*call.signature, std::move(*spec));
}

/// What is missing comes back as this rank, or a peer, goes on with earlier calls.
Status Daemon::awaitRoom(RoomWait &room, Submission &call, const Status &refusal) {
  if (Status inVain = room.look(refusal.message()); !inVain.ok()) {
    fail(inVain);
    return failure();
  }
  call.since = room.begin();
  // Room comes back as earlier calls end, so take them one look further.
  bool hasMoved = false;
  {
    InsideWait inside(*core.device);
    hasMoved = Executor(*core.device).lookAtAll();
  }
  // Nobody else may be awake to look at deadlines and dead peers.
  core.device->tick();
  if (!hasMoved)
    room.pause();
  return {};
}

/// With an invocation that has left the lane.
Status Daemon::goOn(OpenInvocation &invocation, const LaneRun &lane) {
  InsideWait inside(*core.device);
  Executor executor(*core.device);
  executor.goOnClaimed(lane.claimed(), lane.waitingSince());
  executor.runUntil([&] { return invocation.own.isThere(); });
  return invocation.own.take() == StatusCode::Success ? Status() : failure();
}

Status Daemon::wait(RequestId request) {
  switch (core.requests.phase(request)) {
  case RequestTable::Phase::Never:
    return {StatusCode::InvalidArgument, "there is no request " + std::to_string(request)};
  case RequestTable::Phase::InFlight: {
    // This thread is an executor until the request is complete.
    InsideWait inside(*core.device);
    Executor(*core.device).runUntil([&] {
      return core.requests.phase(request) != RequestTable::Phase::InFlight;
    });
    break;
  }
  case RequestTable::Phase::Complete:
  case RequestTable::Phase::Forgotten:
    break;
  }
  return take(request);
}

Status Daemon::take(RequestId request) {
  auto result = core.requests.take(request);
  if (result == StatusCode::Success)
    return {};
  // An invocation fails only together with its communicator; so does one whose result somebody else
  // has taken.
  return failure();
}

Status Daemon::test(RequestId request) {
  using Phase = RequestTable::Phase;
  if (core.requests.phase(request) == Phase::InFlight)
    Executor::lookOnce(*core.device);
  switch (core.requests.phase(request)) {
  case Phase::Never:
    return {StatusCode::InvalidArgument, "there is no request " + std::to_string(request)};
  case Phase::InFlight:
    // Programs that only test have to make the watchdog's rounds, too.
    core.device->tick();
    return {StatusCode::InProgress, "request " + std::to_string(request) + " is in flight"};
  case Phase::Complete:
  case Phase::Forgotten:
    break;
  }
  return take(request);
}

StatusOr<std::unique_ptr<Daemon>> Daemon::split(const SplitRequest &request,
                                                const Options &options) {
  if (core.fabric->failed())
    return failure();
  auto fabric = splitter.split(request, Deadline(options.setUpTimeout));
  if (!fabric.ok())
    return fabric.status();
  // A rank without a colour has taken part and gets nothing.
  if (!*fabric)
    return std::unique_ptr<Daemon>();
  return std::make_unique<Daemon>(core.device, std::move(*fabric), options);
}

StatusOr<std::unique_ptr<Daemon>> Daemon::shrink(const ShrinkRequest &request,
                                                 const Options &options) {
  if (core.fabric->network() && core.options.isOnDevice)
    return Status(StatusCode::InvalidArgument,
                  "a communicator of GPUs that spans machines cannot be shrunk yet; make a new one "
                  "with occlCommInitRank");
  // No check for a failure: a communicator that has failed may be shrunk.
  auto fabric = shrinker.shrink(request);
  if (!fabric.ok())
    return fabric.status();
  return std::make_unique<Daemon>(core.device, std::move(*fabric), options);
}

void Daemon::fail(const Status &cause) {
  core.fabric->fail(cause);
  core.settleFailure();
}

} // namespace occl::daemon
