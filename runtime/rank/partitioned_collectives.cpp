// Partitioned collectives on hosts: each epoch is an invocation that waits for marks.
#include "runtime/rank/partitioned_collectives.h"

#include "plan/model/chunking_of.h"
#include "runtime/control/records/pair_id.h"
#include "runtime/control/records/segment.h"
#include "runtime/partitioned/marks_trace.h"
#include "runtime/partitioned/requests.h"
#include "runtime/partitioned/shape.h"
#include "runtime/rank/daemon.h"
#include "runtime/sched/executor.h"
#include "runtime/sched/inside_wait.h"

#include <cstring>
#include <mutex>
#include <ranges>
#include <utility>

namespace occl::daemon {

namespace {

Status invalid(std::string text) { return {StatusCode::InvalidArgument, std::move(text)}; }

Status outOfRange(const PartitionedCollective &request, int64_t partition, uint64_t of,
                  const char *buffer) {
  return invalid(request.subject + ": there is no partition " + std::to_string(partition) + " of " +
                 std::to_string(of) + " of its " + buffer);
}

std::string epochOf(const PartitionedCollective &request) {
  return request.subject + ", epoch " + std::to_string(request.epoch);
}

/// Whether its marks are made, and counted.
bool isMarked(const PartitionedCollective &request) {
  return request.parts->areAllMarked(request.epoch);
}

} // namespace

PartitionedCollectives::PartitionedCollectives(Core &core, Admission &admission, Daemon &daemon)
    : core(core), admission(admission), daemon(daemon), deferred(core, admission) {}
PartitionedCollectives::~PartitionedCollectives() = default;

/// But for its number, and what it says of the arena.
StatusOr<std::unique_ptr<PartitionedCollective>>
PartitionedCollectives::build(const PartitionedTerms &terms, Collective &shape) const {
  auto request = std::make_unique<PartitionedCollective>();
  request->subject = "partitioned " + shape.spec.plan->collective;
  auto buffers = partitioned::divide(
      {terms.input, terms.output, terms.inputPartitions, terms.outputPartitions},
      shape.spec.plan->ranks[core.fabric->rank()], shape.aliasing, shape.spec.type,
      shape.binding->inputBytes(), shape.binding->outputBytes());
  if (!buffers.ok())
    return Status(buffers.status().code(), request->subject + ": " + buffers.status().message());
  // Marks are asked for by steps of this rank alone, and direct access is by others.
  if (shape.direct.exists)
    return invalid("plan '" + shape.spec.plan->name +
                   "' accesses buffers of other ranks directly, which cannot wait for what they "
                   "mark as ready; compile it without --direct");
  if (terms.factor && !shape.mayHaveFactor)
    return invalid(request->subject + ": a scalar needs a plan that reduces, and is valid out of "
                                      "place");
  // Copy the terms: the program's memory may be gone at the next epoch.
  request->signature = terms.signature;
  request->shape = &shape;
  request->input = terms.input;
  request->output = terms.output;
  request->name = terms.options.name ? terms.options.name : "";
  request->options = terms.options;
  request->options.name = request->name.c_str();
  request->hasFactor = terms.factor != nullptr;
  if (terms.factor)
    std::memcpy(request->factor.data(), terms.factor, sizeOf(shape.spec.type));
  const plan::RankPlan &rank = shape.spec.plan->ranks[core.fabric->rank()];
  request->hasInput = rank.inputChunks != 0;
  request->hasOutput = rank.outputChunks != 0;
  request->parts = std::make_unique<partitioned::CollectiveParts>(
      *buffers, shape.binding->program(), core.device->bell);
  return request;
}

/// Under the lock. That all fit at a time is asked for when they are made: ranks make them in one
/// order, and start them in others, where each could hold what another one waits for. So each has
/// a place of its own, which no other request's epoch ever takes.
StatusOr<transport::Home *> PartitionedCollectives::homeFor(const PartitionedCollective &request) {
  const uint64_t room = Admission::roomOf(*request.shape);
  transport::Home *home = room == 0 ? nullptr : admission.makeHome(room);
  if (home || room == 0)
    return home;
  return Status(StatusCode::Again,
                request.subject + " needs up to " + std::to_string(room) +
                    " bytes of a rank's arena in one piece, of which the requests that there are "
                    "need " +
                    std::to_string(admission.homeRoom()) + " of " +
                    std::to_string(admission.allRoom()) +
                    ". Free some on all ranks, make it in fewer rounds, or set arenaBytes higher");
}

/// Under the lock. Between machines no sequence's announce cell is given back: some requests more
/// would fail when they are started, at other ones on each rank.
Status PartitionedCollectives::checkNumber() const {
  constexpr uint64_t kMost = transport::Segment::kCells / 2; // the rest is for ids of the program
  if (!core.fabric->network() || nextNumber < kMost)
    return {};
  return invalid("a communicator between machines makes at most " + std::to_string(kMost) +
                 " requests of partitioned collectives, freed ones counted: make one and start it "
                 "for each epoch");
}

StatusOr<PartitionedCollective *> PartitionedCollectives::make(PartitionedTerms terms) {
  if (Status checked = partitioned::checkCommunicator(core, "partitioned collectives");
      !checked.ok())
    return checked;
  if (core.fabric->failed())
    return core.fabric->failure();
  // The shape stays while the request has it.
  auto shape = admission.hold(terms.signature, terms.spec);
  if (!shape.ok())
    return shape.status();
  // What comes to nothing must not keep it.
  const auto letGo = [this](Collective *refused) { admission.letGo(*refused); };
  std::unique_ptr<Collective, decltype(letGo)> held(*shape, letGo);
  auto request = build(terms, *held);
  if (!request.ok())
    return request.status();
  std::lock_guard lock(mutex);
  if (Status allowed = checkNumber(); !allowed.ok())
    return allowed;
  auto home = homeFor(**request);
  if (!home.ok())
    return home.status();
  const auto giveUp = [this](transport::Home *refused) { admission.giveUp(*refused); };
  std::unique_ptr<transport::Home, decltype(giveUp)> taken(*home, giveUp);
  // Numbers follow the order of making, which has to be alike on all ranks: they pair epochs.
  (*request)->subject += ", request " + std::to_string(nextNumber);
  (*request)->id = transport::partitionedIdOf(nextNumber);
  PartitionedCollective *made = request->get();
  all.emplace(made, std::move(*request));
  ++nextNumber;
  made->home = taken.release();
  (void)held.release();
  return made;
}

Submission PartitionedCollectives::submissionOf(PartitionedCollective &request) const {
  Submission call;
  call.id = request.id;
  call.input = request.input;
  call.output = request.output;
  call.signature = &request.signature;
  call.options = &request.options;
  call.factor = request.hasFactor ? request.factor.data() : nullptr;
  call.partitions = request.parts.get();
  call.home = request.home;
  return call;
}

/// Again: all requests are taken, which the program sees to. Where room is missing, in the arena or
/// among the sequence's records, others do, and this rank is not to be the one that stays away.
Status PartitionedCollectives::submit(PartitionedCollective &request) {
  Submission call = submissionOf(request);
  auto started = daemon.start(call, [&]() -> StatusOr<CollectiveSpec> {
    return request.shape->spec; // not needed: the shape is held
  });
  if (started.ok()) {
    request.request = *started;
    return {};
  }
  if (started.status().code() != StatusCode::Again)
    return started.status();
  // If no request is free either, only the program can help, and is told so.
  const auto slot = core.requests.open({});
  if (!slot)
    return started.status();
  core.requests.cancel(*slot);
  // Later looks try the submission again, on whatever thread they are.
  request.request = 0;
  call.since = coarseNow();
  request.begin.call = call;
  request.begin.subject = request.subject + ", epoch " + std::to_string(request.epoch + 1);
  request.begin.deadline = request.deadline;
  request.begin.request = 0;
  deferred.add(request.begin, started.status());
  request.isDeferred = true;
  return {};
}

Status PartitionedCollectives::start(PartitionedCollective &request) {
  if (core.fabric->failed())
    return core.fabric->failure();
  if (request.active.load(std::memory_order_relaxed) != 0)
    return invalid(epochOf(request) +
                   " has been started, and not been waited for or tested to its end");
  // The epoch's words are set before a mark can find it active.
  const uint64_t next = request.epoch + 1;
  request.parts->begin(next);
  request.deadline = coarseNow() + (request.options.timeout.count() != 0 ? request.options.timeout
                                                                         : core.options.timeout);
  beginDeferred(); // they came before
  if (Status submitted = submit(request); !submitted.ok())
    return submitted;
  // Only an epoch that was submitted or deferred is one.
  request.epoch = next;
  request.active.store(next, std::memory_order_release);
  return {};
}

Status PartitionedCollectives::checkReady(const PartitionedCollective &request) const {
  if (!request.hasInput)
    return invalid(request.subject + ": rank " + std::to_string(core.fabric->rank()) +
                   " has no input, so no partition of it can be ready");
  return {};
}

/// Those of a range of integers.
template <class Partitions>
Status PartitionedCollectives::mark(PartitionedCollective &request, const Partitions &partitions) {
  if (core.fabric->failed())
    return core.fabric->failure();
  const uint64_t epoch = request.active.load(std::memory_order_acquire);
  if (epoch == 0)
    return invalid(request.subject + " has not been started, so no partition can be ready");
  // Once its marks are counted the request may be freed by another thread, which has waited for it.
  // Those that are made together are counted together: of the list {1, 1} the second is looked at
  // while the first has not ended the epoch.
  Doorbell &bell = core.device->bell;
  const uint64_t id = request.id;
  partitioned::MarksTrace trace(core.trace, id, epoch - 1); // invocations count from 0
  uint64_t made = 0, twice = 0;
  bool isTwice = false;
  for (const auto p : partitions)
    if (request.parts->mark(static_cast<uint64_t>(p), epoch)) {
      ++made;
      trace.add(static_cast<uint64_t>(p));
    } else if (!isTwice) {
      isTwice = true;
      twice = static_cast<uint64_t>(p);
    }
  trace.end();
  if (made != 0)
    request.parts->count(made);
  bell.ring();
  if (!isTwice)
    return {};
  return invalid("partitioned collective, request " +
                 std::to_string(*transport::partitionedCollectiveOf(id)) + ": partition " +
                 std::to_string(twice) + " is ready already in epoch " + std::to_string(epoch));
}

Status PartitionedCollectives::ready(PartitionedCollective &request, plan::Range range) {
  if (Status checked = checkReady(request); !checked.ok())
    return checked;
  const uint64_t partitions = request.parts->shape().input.partitions;
  if (range.end > partitions)
    return outOfRange(request, static_cast<int64_t>(range.end - 1), partitions, "input");
  return mark(request, std::views::iota(range.begin, range.end));
}

Status PartitionedCollectives::ready(PartitionedCollective &request,
                                     std::span<const int64_t> list) {
  if (Status checked = checkReady(request); !checked.ok())
    return checked;
  const uint64_t partitions = request.parts->shape().input.partitions;
  for (const int64_t p : list)
    if (p < 0 || static_cast<uint64_t>(p) >= partitions)
      return outOfRange(request, p, partitions, "input");
  return mark(request, list);
}

/// Takes what is open one look further, here: programs may do nothing but ask.
void PartitionedCollectives::lookOnce() {
  beginDeferred();
  Executor::lookOnce(*core.device);
}

StatusOr<bool> PartitionedCollectives::arrived(PartitionedCollective &request, int64_t partition) {
  if (!request.hasOutput)
    return invalid(request.subject + ": rank " + std::to_string(core.fabric->rank()) +
                   " has no output, so no partition of it arrives");
  const partitioned::CollectiveParts &parts = *request.parts;
  const uint64_t partitions = parts.shape().output.partitions;
  if (partition < 0 || static_cast<uint64_t>(partition) >= partitions)
    return outOfRange(request, partition, partitions, "output");
  const auto q = static_cast<uint64_t>(partition);
  const uint64_t epoch = request.active.load(std::memory_order_acquire);
  if (epoch == 0 && core.fabric->failed()) // perhaps the last one did not complete
    return core.fabric->failure();
  if (epoch == 0 || parts.hasArrived(q, epoch))
    return true;
  // The program may do nothing but ask, so take everything one look further.
  lookOnce();
  if (parts.hasArrived(q, epoch))
    return true;
  core.device->tick();
  if (core.fabric->failed())
    return core.fabric->failure();
  return false;
}

Status PartitionedCollectives::ended(PartitionedCollective &request, const Status &result) {
  request.active.store(0, std::memory_order_release);
  return result;
}

/// A mark that is under way is no reason.
bool PartitionedCollectives::isLate(const PartitionedCollective &request) {
  return coarseNow() >= request.deadline &&
         request.parts->firstUnmarked(request.epoch) < request.parts->shape().input.partitions;
}

/// Its invocation has ended without what is not marked: the plan reads none of it here.
Status PartitionedCollectives::failUnmarked(const PartitionedCollective &request) {
  daemon.fail({StatusCode::Timeout,
               epochOf(request) + " did not end on rank " + std::to_string(core.fabric->rank()) +
                   " before its deadline: partition " +
                   std::to_string(request.parts->firstUnmarked(request.epoch)) +
                   " of its input has not been marked ready"});
  return core.fabric->failure();
}

/// Whether its invocation has been admitted: InProgress while it waits for room; or why it never
/// will be.
Status PartitionedCollectives::begun(PartitionedCollective &request) {
  if (!request.isDeferred)
    return {};
  if (request.begin.isWaiting.load(std::memory_order_acquire))
    return {StatusCode::InProgress, epochOf(request) + " waits for room"};
  request.isDeferred = false;
  request.request = request.begin.request;
  return request.request != 0 ? Status() : core.fabric->failure();
}

Status PartitionedCollectives::test(PartitionedCollective &request) {
  if (request.active.load(std::memory_order_relaxed) == 0)
    return {};
  const Status inProgress{StatusCode::InProgress, epochOf(request) + " is in progress"};
  // Stage one: its invocation is admitted.
  if (request.isDeferred) {
    lookOnce();
    core.device->tick();
    const Status hasBegun = begun(request);
    if (hasBegun.code() == StatusCode::InProgress)
      return inProgress;
    if (!hasBegun.ok())
      return ended(request, hasBegun);
  }
  // Stage two: the invocation ends.
  if (request.request != 0) {
    const Status result = daemon.test(request.request);
    if (result.code() == StatusCode::InProgress)
      return inProgress;
    request.request = 0;
    if (!result.ok())
      return ended(request, result);
  }
  if (!isMarked(request)) { // what it lacks may depend on anything else that is open
    lookOnce();
    core.device->tick();
  }
  // Stage three: every mark is made and counted, also of input that the plan does not read.
  if (isMarked(request))
    return ended(request, {});
  if (core.fabric->failed() || isLate(request))
    return ended(request, failUnmarked(request));
  return inProgress;
}

/// What is missing comes back as this rank, or another one, goes on with what is open.
Status PartitionedCollectives::awaitBegin(PartitionedCollective &request) {
  for (uint32_t looks = 0;; ++looks) {
    Status hasBegun = begun(request);
    if (hasBegun.code() != StatusCode::InProgress)
      return hasBegun;
    bool hasMoved = false;
    // Earlier work that goes on may give room back.
    beginDeferred();
    {
      InsideWait inside(*core.device);
      hasMoved = Executor(*core.device).lookAtAll();
    }
    core.device->tick();
    if (!hasMoved)
      pauseAfter(looks);
  }
}

Status PartitionedCollectives::wait(PartitionedCollective &request) {
  if (request.active.load(std::memory_order_relaxed) == 0)
    return {};
  // Three stages, as in test(): admitted, over, marked.
  if (Status hasBegun = awaitBegin(request); !hasBegun.ok())
    return ended(request, hasBegun);
  if (request.request != 0) {
    const Status result = daemon.wait(request.request);
    request.request = 0;
    if (!result.ok())
      return ended(request, result);
  }
  // The plan may read nothing here, so that marks are missing when its invocation is over.
  if (!isMarked(request)) {
    InsideWait inside(*core.device);
    Executor(*core.device).runUntil([&] {
      return isMarked(request) || core.fabric->failed() || isLate(request);
    });
  }
  return ended(request, isMarked(request) ? Status() : failUnmarked(request));
}

Status PartitionedCollectives::prepare(PartitionedCollective &request) {
  return invalid(request.subject + ": only sends and receives can be prepared");
}

Status PartitionedCollectives::release(PartitionedCollective &request) {
  const bool isActive = request.active.load(std::memory_order_relaxed) != 0;
  // What a failure has ended need not be waited for.
  if (isActive && !(core.fabric->failed() && test(request).code() != StatusCode::InProgress))
    return invalid(epochOf(request) + " is not over: wait for it before the request is freed");
  admission.letGo(*request.shape);
  std::lock_guard lock(mutex);
  if (request.home)
    admission.giveUp(*request.home);
  all.erase(&request);
  return {};
}

} // namespace occl::daemon
