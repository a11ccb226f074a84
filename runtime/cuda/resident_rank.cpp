#include "runtime/cuda/resident_rank.h"

#include "runtime/base/deadline.h"
#include "runtime/base/per_thread.h"
#include "runtime/base/thread.h"
#include "runtime/cuda/buffer_check.h"
#include "runtime/cuda/resident_known.h"

#include <algorithm>
#include <mutex>
#include <string>
#include <utility>

namespace occl::cuda {

namespace {

using namespace std::chrono_literals;

/// For a device that does not react to its daemon, and, in destroy, for what has no deadline.
constexpr std::chrono::milliseconds kDrainPatience = 10s, kEndlessPatience = 30s;
/// Of a slot that submitted invocations have for themselves.
constexpr uint32_t kResidentInstance = SlotKey::kSubmitted;

/// Of a rank that has nothing to do in its collective: complete from the beginning.
constexpr uint64_t kIdleRequest = uint64_t(1) << 60;

Status invalid(std::string text) { return {StatusCode::InvalidArgument, std::move(text)}; }

uint8_t priorityOf(int32_t given) {
  constexpr int32_t kUsual = 128;
  return static_cast<uint8_t>(std::clamp(given, -kUsual, kUsual - 2) + kUsual);
}

/// A request's number in a daemon and which daemon, in one.
daemon::RequestId pack(uint32_t kernel, uint64_t request) {
  return (request + 1) * resident::kNumKernels + kernel;
}

} // namespace

/// A callback that is to be called.
struct ResidentRank::Call {
  ResidentRank *rank;
  daemon::Callback callback;
  daemon::RequestId request = 0;
  StatusCode outcome = StatusCode::Success;
  std::string collective;
  bool neverBlocks = false;
};

namespace {
/// Of this file alone, so that the library does not name the pointer to others.
struct Innermost;
} // namespace

/// The callbacks that this thread is in, a list on its stack.
struct ResidentRank::CallScope {
  explicit CallScope(const ResidentRank &rank) : rank(rank), outer(innermost()) {
    innermost() = this;
  }
  ~CallScope() { innermost() = outer; }

  static const CallScope *&innermost() { return pointerOfThisThread<Innermost, const CallScope>(); }
  const ResidentRank &rank;
  const CallScope *const outer;
};

ResidentRank::ResidentRank(daemon::Fabric &fabric, const Options &options,
                           const ShapeContext &context)
    : fabric(fabric), options(options), context(context), seenLeft(fabric.numRanks(), false) {
  for (uint32_t k = 0; k < resident::kNumKernels; ++k)
    shares[k] = std::make_unique<Share>(*this, k);
}

StatusOr<std::unique_ptr<ResidentRank>>
ResidentRank::make(daemon::Fabric &fabric, const Options &options, const ShapeContext &context) {
  std::unique_ptr<ResidentRank> rank(new ResidentRank(fabric, options, context));
  auto set = resident::ResidentSet::of(options.scheduler.get(),
                                       {options.device, options.numExecutors,
                                        options.scheduler->options.preemption, options.isStrict});
  if (!set.ok())
    return set.status();
  rank->set = std::move(*set);
  // Somebody has to answer when other ranks ask.
  if (Status attached = rank->attach(0); !attached.ok())
    return attached;
  return rank;
}

ResidentRank::~ResidentRank() { detach(); }

bool ResidentRank::detach() {
  bool haveLeft = true;
  for (auto &share : shares)
    if (share->isAttached.exchange(false, std::memory_order_relaxed))
      haveLeft &= daemonOf(share->kernel).detach(*share);
  while (callsUnderWay.load(std::memory_order_acquire) != 0)
    sleepFor(100us);
  return haveLeft;
}

/// Somebody is kept who keeps the daemons.
void ResidentRank::abandon() { (void)new std::shared_ptr<resident::ResidentSet>(set); }

uint64_t ResidentRank::countOpen() {
  std::lock_guard lock(mutex);
  uint64_t open = 0;
  for (const auto &[id, known] : collectives)
    open += known->submitted - known->completed - known->failed;
  return open;
}

void ResidentRank::drain() {
  // Every request ends at its deadline, if it has one and the device reacts.
  std::chrono::milliseconds patience = kEndlessPatience;
  const auto allow = [&](std::chrono::milliseconds given) {
    if (given < kNoDeadline)
      patience = std::max(patience, given + kDrainPatience);
  };
  allow(options.timeout);
  {
    std::lock_guard lock(mutex);
    for (const auto &[id, known] : collectives)
      allow(known->spec.timeout);
  }
  Deadline deadline(patience);
  while (countOpen() != 0 && !deadline.passed())
    sleepFor(50us);
  while (callsUnderWay.load(std::memory_order_acquire) != 0)
    sleepFor(50us);
}

Status ResidentRank::attach(uint32_t kernel) {
  Share &share = *shares[kernel];
  if (share.isAttached.load(std::memory_order_relaxed))
    return {};
  Status attached = daemonOf(kernel).attach(share);
  if (attached.ok() && isTracing)
    attached = daemonOf(kernel).startMarks();
  share.isAttached.store(attached.ok(), std::memory_order_release);
  return attached;
}

// --- collectives ---

void ResidentRank::add(const daemon::CollectiveSpec &spec) {
  std::lock_guard lock(mutex);
  collectives[spec.id] = std::make_unique<Known>(spec, fabric.rank());
}

void ResidentRank::lookAfter() {
  for (const auto &share : shares)
    if (share->isAttached.load(std::memory_order_acquire))
      daemonOf(share->kernel).lookAfter(*share);
}

void ResidentRank::settleComplete() {
  for (const auto &share : shares)
    if (share->isAttached.load(std::memory_order_acquire))
      daemonOf(share->kernel).settleComplete();
}

Status ResidentRank::remove(uint64_t id) {
  std::lock_guard registration(registering);
  std::unique_ptr<Known> known;
  {
    std::lock_guard lock(mutex);
    auto found = collectives.find(id);
    if (found == collectives.end())
      return {};
    const Known &there = *found->second;
    if (there.submitted != there.completed + there.failed)
      return invalid("collective " + there.describe() + " has invocations in flight");
  }
  auto counted = counts(id);
  {
    std::lock_guard lock(mutex);
    known = std::move(collectives[id]);
    collectives.erase(id);
    if (counted.ok())
      addTo(past, *counted);
  }
  if (!known->isResident.load(std::memory_order_acquire))
    return {};
  if (!known->isIdle()) {
    daemonOf(known->kernel).remove(known->number);
    // An executor may still be adding the last visit.
    context.space.releaseWithSlot(known->registration->collective().slot, {known->counts});
  }
  return known->registration->retire();
}

StatusOr<ResidentRank::Known *> ResidentRank::find(uint64_t id) {
  std::lock_guard lock(mutex);
  auto found = collectives.find(id);
  if (found == collectives.end())
    return invalid("no collective with id " + std::to_string(id) + " is registered");
  return found->second.get();
}

/// Submitted invocations have connectors of their own: calls in streams keep to another order.
Status ResidentRank::ensureResident(Known &known) {
  if (known.isResident.load(std::memory_order_acquire))
    return {};
  std::lock_guard lock(registering);
  if (known.isResident.load(std::memory_order_acquire))
    return {};
  auto made = Registration::make(context, known.spec, kResidentInstance);
  if (!made.ok())
    return made.status();
  known.registration = std::move(*made);
  if (!known.isIdle())
    if (Status status = addToDaemon(known); !status.ok())
      return status;
  known.isResident.store(true, std::memory_order_release);
  return {};
}

Status ResidentRank::addToDaemon(Known &known) {
  const DeviceCollective &device = known.registration->collective();
  auto counts = context.space.allocate(device.numBlocks * sizeof(resident::BlockCounts));
  if (!counts)
    return {StatusCode::Again, "no device memory is left for the counters of collective " +
                                   known.describe() + "; set arenaBytes higher"};
  char *begin = context.memory.arena(context.rank) + counts->offset;
  Status status = context.memory.clear(begin, counts->bytes);
  known.kernel = resident::kernelFor(device);
  known.counts = *counts;
  if (status.ok())
    status = attach(known.kernel);
  if (status.ok()) {
    auto number =
        daemonOf(known.kernel)
            .add(*shares[known.kernel], device, reinterpret_cast<resident::BlockCounts *>(begin));
    known.number = number.ok() ? *number : 0;
    status = number.status();
  }
  if (!status.ok())
    context.space.release(*counts);
  return status;
}

// --- requests ---

Status ResidentRank::checkBuffers(const Known &known, const void *input, const void *output) const {
  const interpreter::Binding &binding = known.registration->binding();
  if (!known.aliasing.accepts(input, output))
    return invalid("collective " + known.describe() + ": " +
                   known.aliasing.complaint(input, output));
  if (known.registration->collective().isDirect &&
      (!context.memory.offsetOf(input, binding.inputBytes()) ||
       !context.memory.offsetOf(output, binding.outputBytes())))
    return invalid(
        "collective " + known.describe() +
        ": a plan with direct access needs buffers of occlMemAlloc when it is submitted");
  return checkOnDevice({input, output}, {binding.inputBytes(), binding.outputBytes()},
                       context.memory.device(), false);
}

StatusOr<daemon::RequestId> ResidentRank::submit(uint64_t id, const void *input, void *output,
                                                 std::optional<cudaStream_t> after,
                                                 const daemon::Callback &callback) {
  if (fabric.failed())
    return fabric.failure();
  auto found = find(id);
  if (!found.ok())
    return found.status();
  Known &known = **found;
  Status status = ensureResident(known);
  if (status.ok())
    status = checkBuffers(known, input, output);
  if (status.ok() && callback && !known.spec.callbacksNeverBlock)
    status = options.scheduler->callbacks.ensureThread();
  if (!status.ok())
    return status;
  resident::ResidentDaemon::Callback called;
  if (callback) {
    callsUnderWay.fetch_add(1, std::memory_order_relaxed);
    called = [this, &known, callback](uint64_t request, const Status &outcome) {
      take(new Call{this, callback, pack(known.kernel, request), outcome.code(), known.describe(),
                    known.spec.callbacksNeverBlock});
    };
  }
  {
    std::lock_guard lock(mutex);
    ++known.submitted;
  }
  if (known.isIdle()) {
    ended(id, {}, 0ns);
    if (called)
      called(kIdleRequest, {});
    return pack(known.kernel, kIdleRequest);
  }
  const auto timeout = known.spec.timeout.count() != 0 ? known.spec.timeout : options.timeout;
  auto request = daemonOf(known.kernel)
                     .submit({known.number, id, input, output, priorityOf(known.spec.priority),
                              timeout, after},
                             std::move(called));
  if (request.ok())
    return pack(known.kernel, *request);
  if (callback)
    callsUnderWay.fetch_sub(1, std::memory_order_relaxed);
  std::lock_guard lock(mutex);
  --known.submitted;
  return request.status();
}

StatusOr<std::pair<uint32_t, uint64_t>> ResidentRank::place(daemon::RequestId request) {
  const auto kernel = static_cast<uint32_t>(request % resident::kNumKernels);
  const uint64_t number = request / resident::kNumKernels;
  if (number == 0 || (number - 1 != kIdleRequest && !daemonOf(kernel).isKnown(number - 1)))
    return invalid("there is no request " + std::to_string(request));
  return std::pair(kernel, number - 1);
}

Status ResidentRank::wait(daemon::RequestId request) {
  auto found = place(request);
  if (!found.ok() || found->second == kIdleRequest)
    return found.status();
  return daemonOf(found->first).wait(found->second, kNoDeadline);
}

Status ResidentRank::test(daemon::RequestId request) {
  auto found = place(request);
  if (!found.ok() || found->second == kIdleRequest)
    return found.status();
  resident::ResidentDaemon &daemon = daemonOf(found->first);
  if (!daemon.isComplete(found->second) && daemon.failure().ok()) {
    daemon.goOn();
    return {StatusCode::InProgress, "request " + std::to_string(request) + " is in flight"};
  }
  return daemon.settle(found->second);
}

void ResidentRank::ended(uint64_t id, const Status &outcome, std::chrono::nanoseconds after) {
  {
    std::lock_guard lock(mutex);
    auto found = collectives.find(id);
    if (found == collectives.end())
      return;
    Known &known = *found->second;
    ++(outcome.ok() ? known.completed : known.failed);
    if (outcome.ok()) {
      const auto time = static_cast<uint64_t>(after.count());
      known.finishNs += time;
      known.longestFinishNs = std::max(known.longestFinishNs, time);
    }
  }
  forgetWaits();
}

// --- callbacks ---

/// Those that never block one at a time, by whoever comes; the others by threads that are there for
/// it.
void ResidentRank::take(Call *call) {
  if (!call->neverBlocks)
    return options.scheduler->callbacks.add({callBackOnThread, call, 0});
  std::unique_lock lock(mutex);
  calls.emplace_back(call);
  if (isCalling)
    return;
  isCalling = true;
  while (!calls.empty()) {
    std::unique_ptr<Call> next = std::move(calls.front());
    calls.pop_front();
    lock.unlock();
    callBack(std::move(next));
    lock.lock();
  }
  isCalling = false;
}

void ResidentRank::callBackOnThread(void *call, uint32_t) {
  std::unique_ptr<Call> taken(static_cast<Call *>(call));
  ResidentRank &rank = *taken->rank;
  rank.callBack(std::move(taken));
}

void ResidentRank::callBack(std::unique_ptr<Call> call) {
  {
    CallScope scope(*this);
    Status status = call->callback.invoke(call->callback.function, call->request, call->outcome,
                                          call->callback.user);
    if (!status.ok())
      fabric.fail({StatusCode::CallbackFailed, "the callback of collective " + call->collective +
                                                   " threw an exception on rank " +
                                                   std::to_string(fabric.rank()) + ": " +
                                                   status.message()});
  }
  callsUnderWay.fetch_sub(1, std::memory_order_release);
}

bool ResidentRank::isCallingBack() const {
  for (const CallScope *scope = CallScope::innermost(); scope; scope = scope->outer)
    if (&scope->rank == this)
      return true;
  return false;
}

} // namespace occl::cuda
