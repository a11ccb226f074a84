// A rank's calls from occlStart on until a resident daemon has them, or the queue of those that
// wait (resident_queue.cpp).
#include "runtime/cuda/lanes/resident_calls.h"

#include "runtime/cuda/device/buffer_check.h"
#include "runtime/cuda/device/cuda_calls.h"
#include "runtime/sync/thread.h"

#include <bit>
#include <mutex>

namespace occl::cuda {

namespace {

using namespace std::chrono_literals;

/// Calls that wait, at most.
constexpr size_t kMostWaiting = 16384;
/// Ids that are known, about.
constexpr size_t kMostSequences = 4096;
/// For other ranks to make calls that hold lanes.
constexpr auto kLanePatience = 50ms;
/// For the lock, some 100 us.
constexpr uint32_t kLooksToStart = 5000;

Status invalid(std::string text) { return {StatusCode::InvalidArgument, std::move(text)}; }

uint8_t priorityOf(int32_t given) {
  constexpr int32_t kUsual = 128;
  return static_cast<uint8_t>(std::clamp(given, -kUsual, kUsual - 2) + kUsual);
}

std::string nameOfCall(const daemon::CollectiveSpec &spec) {
  if (transport::partitionedCollectiveOf(spec.id))
    return spec.name;
  return "'" + (spec.name.empty() ? spec.plan->name : spec.name) + "' (id " +
         std::to_string(spec.id) + ")";
}

} // namespace

// --- what executes ---

StatusOr<bool> ResidentRank::Engine::prepare(LaneCall &call, LaneName lane) {
  auto number = rank.lanes.numberOf(lane, *static_cast<Started &>(call).shape);
  return number.ok() ? StatusOr<bool>(number->has_value()) : number.status();
}

StatusOr<std::optional<uint64_t>> ResidentRank::Engine::execute(LaneCall &call, LaneName lane,
                                                                uint64_t number) {
  auto &started = static_cast<Started &>(call);
  // Early calls are executed under a lock that other ranks wait for: nothing is made there.
  auto inDaemon =
      started.entersEarly
          ? StatusOr<std::optional<uint32_t>>(DeviceLanes::knownNumberOf(lane, *started.shape))
          : rank.lanes.numberOf(lane, *started.shape);
  // A lane that another id holds has made it take this one: memory may be free later.
  if (!inDaemon.ok() && inDaemon.status().code() != StatusCode::Again)
    return inDaemon.status();
  if (!inDaemon.ok() || !*inDaemon)
    return std::optional<uint64_t>();
  // The call has a number in its lane, and the pair of shape and lane one in the daemon.
  auto request = rank.daemonOf(lane.kernel)
                     .enter({.collective = **inDaemon,
                             .ordinal = rank.lanes.ordinalOf(number),
                             .tag = call.id,
                             .input = started.input,
                             .output = started.output,
                             .priority = started.priority,
                             .timeout = started.timeout,
                             .since = started.since,
                             .awaited = started.awaited,
                             .isGated = started.entersEarly},
                            rank.completionOf(started));
  if (!request.ok())
    return request.status().code() == StatusCode::Again
               ? StatusOr<std::optional<uint64_t>>(std::optional<uint64_t>())
               : request.status();
  started.inDaemon = *request;
  DeviceLanes::noteRequest(lane, *started.shape, *request);
  std::lock_guard lock(rank.mutex);
  if (auto found = rank.sequences.find(call.id); found != rank.sequences.end()) {
    Sequence &sequence = *found->second;
    sequence.lane = lane;
    if (started.epoch != 0)
      sequence.epochs.emplace(rank.lanes.ordinalOf(number), started.epoch);
    if (started.request != 0) // it had to wait
      sequence.waitedNs +=
          static_cast<uint64_t>(std::chrono::nanoseconds(Clock::now() - started.since).count());
  }
  return std::optional(*request);
}

/// What the daemon calls when it has ended: for a callback of the user, and memory of the call's
/// own.
resident::ResidentDaemon::Callback ResidentRank::completionOf(Started &call) {
  if (!call.callback && !call.ended && call.scaling.elements == 0)
    return {};
  const uint32_t kernel = call.kernel;
  return [this, stays = std::make_shared<EndUnderWay>(*this), kernel, name = call.name,
          callback = call.callback, neverBlocks = call.callbackNeverBlocks, given = call.request,
          scaling = call.scaling, ended = call.ended](uint64_t request, const Status &outcome) {
    if (ended)
      ended();
    // What has failed may still be in its stream, or other ranks may read the input.
    if (scaling.elements != 0 && outcome.ok())
      options.inputs->giveBack(scaling.to);
    if (callback && given != 0)
      forgetDeferred(given);
    if (callback)
      take(new Call{this, callback, given != 0 ? given : packedRequest(kernel, request),
                    outcome.code(), name, neverBlocks});
    if (hasWork())
      comeBy();
    if (scaling.elements != 0)
      numScaled.fetch_sub(1, std::memory_order_release);
  };
}

// --- starting ---

Status ResidentRank::checkBuffers(const LaneShape &shape, const std::string &name,
                                  const void *input, const void *output) const {
  if (!shape.aliasing.accepts(input, output))
    return invalid("call " + name + ": " + shape.aliasing.complaint(input, output));
  const auto isOurs = [&](const void *buffer, uint64_t bytes) {
    return bytes == 0 || context.memory.offsetOf(buffer, bytes).has_value();
  };
  if (shape.shape->collective().isDirect &&
      (!isOurs(input, shape.shape->inputBytes()) || !isOurs(output, shape.shape->outputBytes())))
    return invalid("call " + name + ": plan '" + shape.spec->plan->name +
                   "' needs buffers of occlMemAlloc, as ranks access each other's buffers in it");
  return checkOnDevice({{kBufferNames[0], input, shape.shape->inputBytes()},
                        {kBufferNames[1], output, shape.shape->outputBytes()}},
                       context.memory.device(), false);
}

/// All that may be refused, before the call has a number.
StatusOr<std::unique_ptr<ResidentRank::Started>> ResidentRank::makeCall(const Order &order) {
  const daemon::CollectiveSpec &spec = order.spec;
  auto shape = lanes.shapeFor(spec, order.parts);
  if (!shape.ok())
    return shape.status();
  if (const uint32_t blocks = (*shape)->shape->collective().numBlocks; blocks > resident::kMaxTasks)
    return invalid("plan '" + spec.plan->name + "' has " + std::to_string(blocks) +
                   " thread blocks on this rank; occlStart executes plans of at most " +
                   std::to_string(resident::kMaxTasks) + " on devices");
  auto call = std::make_unique<Started>();
  call->id = spec.id;
  call->kernel = (*shape)->kernel;
  call->signature = order.signature;
  call->signature.isLarge = (*shape)->isLarge;
  call->entersEarly = order.after.has_value();
  call->name = nameOfCall(spec);
  call->shape = *shape;
  // The buffers, and whether the input has to be scaled or copied.
  Status status = checkBuffers(**shape, call->name, order.input, order.output);
  auto scale =
      status.ok() ? (*shape)->shape->scaleBy(order.factor, false) : StatusOr<InputScale>(status);
  if (!scale.ok())
    return status.ok() ? Status(scale.status().code(),
                                "call " + call->name + ": " + scale.status().message())
                       : status;
  if (!scale->isNone() || (*shape)->aliasing.needsCopy(order.input, order.output))
    call->scaling = {spec.type, *scale, static_cast<const char *>(order.input), nullptr,
                     (*shape)->shape->inputBytes() / sizeOf(spec.type)};
  // Refuse partitioned collectives that cannot be executed so.
  if (order.parts && !options.scheduler->options.preemption)
    return invalid("partitioned collectives need preemption, which config->preemption has turned "
                   "off");
  if (order.parts && (*shape)->shape->collective().isDirect)
    return invalid("plan '" + spec.plan->name +
                   "' accesses buffers of other ranks directly, which cannot wait for what they "
                   "mark as ready; compile it without --direct");
  if (order.parts && call->scaling.elements != 0)
    return invalid(call->name + " would read a copy of its input, which is not there on devices "
                                "yet: a sum without a scalar, and not in place, is");
  // The thread and the daemon that the call needs are there before it has a number.
  if (status.ok() && order.callback && !spec.callbacksNeverBlock)
    status = options.scheduler->callbacks.ensureThread();
  if (status.ok())
    status = attachedDaemon(call->kernel).status();
  if (!status.ok())
    return status;
  // Nothing fails from here on.
  call->input = (*shape)->shape->inputBytes() != 0 ? order.input : nullptr;
  call->output = (*shape)->shape->outputBytes() != 0 ? order.output : nullptr;
  call->priority = priorityOf(spec.priority);
  call->timeout = spec.timeout.count() != 0 ? spec.timeout : options.timeout;
  if (call->timeout < kNoDeadline && call->timeout.count() > longestTimeout.load())
    longestTimeout.store(call->timeout.count());
  call->callback = order.callback;
  call->ended = order.ended;
  call->epoch = order.epoch;
  call->callbackNeverBlocks = spec.callbacksNeverBlock;
  return call;
}

/// Whoever executes what waits has it for microseconds, less than sleeping takes.
std::unique_lock<Mutex> ResidentRank::lockToStart() {
  std::unique_lock lock(starting, std::defer_lock);
  for (uint32_t look = 0; look < kLooksToStart && !lock.try_lock(); ++look)
    relax();
  if (!lock.owns_lock())
    lock.lock();
  return lock;
}

StatusOr<daemon::RequestId> ResidentRank::start(const Order &order) {
  if (fabric.failed())
    return fabric.failure();
  std::unique_lock lock = lockToStart();
  if (isEnding)
    return Status(StatusCode::Aborted, "the communicator is being destroyed");
  auto call = makeCall(order);
  if (!call.ok())
    return call.status();
  if (calls.numWaiting() >= kMostWaiting)
    return Status(StatusCode::Again, std::to_string(kMostWaiting) +
                                         " calls wait for others of their ids, or for lanes");
  // Memory for a copy of the input, and, without a stream, the copy itself.
  if (Status scaled = (*call)->scaling.elements != 0 ? takeScaled(lock, **call) : Status();
      !scaled.ok())
    return scaled;
  const Scaling scaling = (*call)->scaling;
  if (Status scaled = scaling.elements != 0 && !order.after ? scaleNow(lock, **call) : Status();
      !scaled.ok())
    return scaled;
  // From here on the call counts, until it is refused.
  if (order.callback)
    callsUnderWay.fetch_add(1, std::memory_order_relaxed);
  noteStarted(**call);
  auto request = place(std::move(*call));
  if (!request.ok())
    forgetStarted(order.spec.id);
  lock.unlock();
  if (!request.ok()) {
    endScaled(scaling, true);
    if (order.callback)
      callsUnderWay.fetch_sub(1, std::memory_order_release);
    return request.status();
  }
  // The stream lets it begin: the lock is not needed for that.
  if (order.after)
    if (Status opens = letBegin(order, scaling, *request); !opens.ok())
      fabric.fail(opens); // nobody will let it begin
  return request;
}

/// Memory for a copy of its input, which is not there yet. What only streams have waited for may
/// hold some: that is looked at without the lock, as callbacks are called then.
Status ResidentRank::takeScaled(std::unique_lock<Mutex> &lock, Started &call) {
  const uint64_t bytes = call.scaling.elements * sizeOf(call.scaling.type);
  char *taken = options.inputs->take(bytes);
  if (!taken) {
    lock.unlock();
    settleComplete();
    lock.lock();
    taken = options.inputs->take(bytes);
  }
  // Only calls in flight give memory back: without any, waiting would not help.
  if (!taken) {
    const bool isHeld = numScaled.load(std::memory_order_acquire) != 0;
    return {isHeld ? StatusCode::Again : StatusCode::SystemError,
            "call " + call.name + ": no " + std::to_string(bytes) +
                " bytes of device memory are free for a copy of its input" +
                (isHeld ? " (other calls hold some)" : "") +
                "; free memory of occlMemAlloc, or set heapBytes higher"};
  }
  numScaled.fetch_add(1, std::memory_order_relaxed);
  call.scaling.to = taken;
  call.input = taken;
  // Destroying may have begun while the lock was open.
  if (!isEnding)
    return {};
  endScaled(call.scaling, true);
  return {StatusCode::Aborted, "the communicator is being destroyed"};
}

/// Without the lock meanwhile. The call has no number yet, nor is it known to anybody.
Status ResidentRank::scaleNow(std::unique_lock<Mutex> &lock, Started &call) {
  lock.unlock();
  Status status = options.inputs->scaleNow(call.scaling);
  lock.lock();
  if (status.ok() && fabric.failed())
    status = fabric.failure();
  if (status.ok() && isEnding)
    status = {StatusCode::Aborted, "the communicator is being destroyed"};
  if (!status.ok()) // after a timeout the kernel may still come
    endScaled(call.scaling, status.code() != StatusCode::Timeout);
  return status;
}

/// Of a call that nobody executes. isOver: the memory may be another's.
void ResidentRank::endScaled(const Scaling &scaling, bool isOver) {
  if (scaling.elements == 0)
    return;
  if (isOver)
    options.inputs->giveBack(scaling.to);
  numScaled.fetch_sub(1, std::memory_order_release);
}

/// Executes it, or has it wait. An error: nobody counts on it, or the communicator has failed.
StatusOr<daemon::RequestId> ResidentRank::place(std::unique_ptr<Started> call) {
  // Execute it at once; if a stream waits for it, some more tries.
  auto isExecuted = tryNow(*call);
  if (isExecuted.ok() && !*isExecuted && call->entersEarly)
    isExecuted = insistOn(*call);
  if (!isExecuted.ok()) {
    // Others count on the call, or make a different one: the communicator cannot go on.
    if (calls.isMade(*call) || isExecuted.status().code() == StatusCode::Mismatch)
      fabric.fail(isExecuted.status());
    return isExecuted.status();
  }
  if (*isExecuted)
    return packedRequest(call->kernel, call->inDaemon);
  // A call in the order of a stream has no place in the queue.
  if (call->entersEarly)
    return Status(StatusCode::Again,
                  "call " + call->name +
                      " has to wait before it can wait for its stream: its id has calls that wait, "
                      "or no lane is free; ids that hold lanes: " +
                      table.holders(call->kernel));
  // It waits, under a number of its own by which its user finds it.
  daemon::RequestId request = 0;
  {
    std::lock_guard lock(mutex);
    request = kFirstDeferred + numDeferred++;
    deferred[request] = {};
  }
  call->request = request;
  if (const uint32_t missing = calls.missingFor(*call); missing != 0)
    call->awaited = static_cast<uint32_t>(std::countr_zero(missing));
  calls.enqueue(std::move(call));
  noteWaiting();
  // The daemon's thread comes by for it.
  daemonOf(0).attend();
  return request;
}

/// With the lock.
StatusOr<bool> ResidentRank::tryNow(Started &call) {
  LaneCalls::Calls executed;
  auto isExecuted = calls.tryNow(call, executed);
  notePlaced(executed);
  return isExecuted;
}

/// A call that cannot wait in the queue, since a stream does: lanes that are held may become free,
/// and calls of its id that wait may go on.
StatusOr<bool> ResidentRank::insistOn(Started &call) {
  for (Deadline usual(kLanePatience); !usual.passed();) {
    sleepFor(20us);
    // It has the lock: nobody else could start anything.
    if (Status gone = executeWaiting(); !gone.ok()) {
      fabric.fail(gone);
      return fabric.failure();
    }
    auto isExecuted = tryNow(call);
    if (!isExecuted.ok() || *isExecuted)
      return isExecuted;
  }
  // Nothing waits in the queue that would find out.
  const auto isGone = [this](uint32_t r) { return fabric.isGone(r); };
  if (const auto lost = calls.refusedForLost(call, isGone)) {
    fabric.fail({StatusCode::PeerFailed,
                 fabric.describeGone(*lost) + "; call " + call.name + " needs that rank"});
    return fabric.failure();
  }
  return false;
}

Status ResidentRank::letBegin(const Order &order, const Scaling &scaling,
                              daemon::RequestId request) {
  // Into the stream, in this order: the begin, the copy of the input, the gate.
  auto found = place(request);
  if (!found.ok())
    return found.status();
  Status status = order.begin ? order.begin() : Status();
  if (status.ok() && scaling.elements != 0) {
    OnDevice on(options.device);
    status = options.inputs->scaleIn(*order.after, scaling);
  }
  // The gate opens all the same: only then can another request have its place.
  if (!status.ok()) {
    daemonOf(found->first).letGo(found->second);
    return status;
  }
  return daemonOf(found->first).letBegin(*order.after, found->second);
}

Status ResidentRank::prepare(const Order &order) {
  std::unique_lock lock = lockToStart();
  auto call = makeCall(order);
  if (!call.ok())
    return call.status();
  auto lane = table.laneOf(order.spec.id, (*call)->kernel, (*call)->signature.isLarge);
  if (!lane.ok())
    return lane.status();
  auto number = *lane ? lanes.numberOf(**lane, *(*call)->shape) : std::optional<uint32_t>();
  if (!number.ok() || *number)
    return number.status();
  return {StatusCode::Again, "call " + (*call)->name + ": no tables are free for it just now"};
}

void ResidentRank::forget(uint64_t id, const PartGates *parts) {
  std::unique_lock lock = lockToStart();
  lanes.forget(parts);
  std::lock_guard known(mutex);
  if (auto found = sequences.find(id); found != sequences.end())
    forgetSequence(found);
}

/// With both locks, if nothing of it is open.
bool ResidentRank::forgetSequence(Sequences::iterator known) {
  const Sequence &sequence = *known->second;
  if (!sequence.isIdle() || !calls.forget(known->first))
    return false;
  // Counters of ids that are forgotten go on in the totals.
  past.submitted += sequence.submitted;
  past.completed += sequence.completed;
  past.failed += sequence.failed;
  sequences.erase(known);
  return true;
}

void ResidentRank::noteStarted(const Started &call) {
  std::lock_guard lock(mutex);
  if (sequences.size() >= kMostSequences && !sequences.contains(call.id))
    forgetOldSequences();
  auto &sequence = sequences[call.id];
  if (!sequence)
    sequence = std::make_unique<Sequence>();
  sequence->name = call.name;
  sequence->last = call.shape->spec;
  ++sequence->submitted;
  sequence->open.push_back(call.shape);
  sequence->moved.resize(
      std::max(sequence->moved.size(), call.shape->shape->bytesOfBlocks().size()));
}

/// It was refused.
void ResidentRank::forgetStarted(uint64_t id) {
  std::lock_guard lock(mutex);
  if (auto found = sequences.find(id); found != sequences.end() && found->second->submitted != 0) {
    --found->second->submitted;
    if (!found->second->open.empty())
      found->second->open.pop_back();
  }
}

/// With the lock: half of those that are over.
void ResidentRank::forgetOldSequences() {
  size_t left = sequences.size() / 2;
  for (auto next = sequences.begin(); next != sequences.end() && left != 0;) {
    const auto here = next++;
    if (!transport::partitionedCollectiveOf(here->first)) // else its request forgets it
      left -= forgetSequence(here) ? 1 : 0;
  }
}

} // namespace occl::cuda
