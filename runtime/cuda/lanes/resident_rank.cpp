// A communicator's rank among the tenants of a device's daemons: attaching, ending, callbacks.
#include "runtime/cuda/lanes/resident_calls.h"

#include "runtime/invocation/plan_scaling.h"
#include "runtime/sync/adaptive_mutex.h"
#include "runtime/sync/deadline.h"
#include "runtime/sync/drain_patience.h"
#include "runtime/sync/per_thread.h"
#include "runtime/sync/thread.h"

#include <algorithm>
#include <mutex>
#include <string>
#include <utility>

namespace occl::cuda {

namespace {

using namespace std::chrono_literals;

/// In destroy, behind deadlines: for a device that does not react to its daemon.
constexpr std::chrono::milliseconds kDrainGrace = 10s;

Status invalid(std::string text) { return {StatusCode::InvalidArgument, std::move(text)}; }

/// Why the rank that has the lock of the board will not give it back, if it will not.
Status whyHeld(const daemon::Fabric &fabric, uint32_t owner) {
  if (fabric.failed())
    return fabric.failure();
  if (fabric.isGone(owner))
    return {StatusCode::PeerFailed, fabric.describeGone(owner) + ", in the middle of a call"};
  return {};
}

} // namespace

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

LaneSignature agreeOn(daemon::CollectiveSpec &spec, uint8_t kind, uint32_t root) {
  if (!daemon::reduces(*spec.plan))
    spec.op = ReduceOp::Sum;
  return {spec.planHash,
          spec.count,
          root,
          kind,
          static_cast<uint8_t>(spec.type),
          static_cast<uint8_t>(spec.op)};
}

ResidentRank::ResidentRank(daemon::Fabric &fabric, const Options &options,
                           const ShapeContext &context)
    : fabric(fabric), options(options), context(context),
      lanes(
          context, options.firstCall, [this](uint32_t kernel) { return attachedDaemon(kernel); },
          [this](uint32_t kernel) -> resident::Tenant & { return *shares[kernel]; }),
      table(*options.board, fabric.rank(), fabric.numRanks(), lanes.numbers(),
            [&fabric](uint32_t owner) { return whyHeld(fabric, owner); }),
      engine(std::make_unique<Engine>(*this)), calls(table, *engine),
      seenGone(fabric.numRanks(), false) {
  lookBeforeSleeping(mutex);
  for (uint32_t k = 0; k < resident::kNumKernels; ++k)
    shares[k] = std::make_unique<Share>(*this, k);
}

StatusOr<std::unique_ptr<ResidentRank>>
ResidentRank::make(daemon::Fabric &fabric, const Options &options, const ShapeContext &context) {
  std::unique_ptr<ResidentRank> rank(new ResidentRank(fabric, options, context));
  const daemon::DeviceOptions &shared = options.scheduler->options;
  // Ranks with the same scheduler share the daemons of the device.
  auto set =
      resident::ResidentSet::of(options.scheduler.get(), {.device = options.device,
                                                          .numExecutors = options.numExecutors,
                                                          .preemption = shared.preemption,
                                                          .order = shared.order,
                                                          .budget = shared.budget,
                                                          .spin = shared.spin,
                                                          .isStrict = options.isStrict});
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
  std::unique_lock lock(starting);
  isEnding = true; // from now on the queue is gone through to its end
  callAll(advance(std::move(lock)));
  // Daemons end what is left of the rank's calls.
  bool haveLeft = true;
  for (auto &share : shares) {
    share->isAttached.store(false, std::memory_order_relaxed);
    if (share->isKnown.exchange(false, std::memory_order_relaxed))
      haveLeft &= daemonOf(share->kernel).detach(*share);
  }
  // Callbacks, and threads that tell of ends, still use this rank.
  while (callsUnderWay.load(std::memory_order_acquire) != 0 ||
         endsUnderWay.load(std::memory_order_acquire) != 0 ||
         numScaled.load(std::memory_order_acquire) != 0)
    sleepFor(100us);
  return haveLeft;
}

/// Somebody is kept who keeps the daemons.
void ResidentRank::abandon() { (void)new std::shared_ptr<resident::ResidentSet>(set); }

uint64_t ResidentRank::countOpen() {
  std::lock_guard lock(mutex);
  uint64_t open = 0;
  for (const auto &[id, sequence] : sequences)
    open += sequence->submitted - sequence->completed - sequence->failed;
  return open;
}

std::chrono::milliseconds ResidentRank::drainPatience() const {
  const std::chrono::milliseconds longest(longestTimeout.load(std::memory_order_relaxed));
  return occl::drainPatience({options.timeout, longest}, kDrainGrace);
}

void ResidentRank::drain(const Deadline &deadline) {
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
  // Whatever comes of the marks: the daemon's thread calls the share from now on, until detach().
  if (attached.ok())
    share.isKnown.store(true, std::memory_order_relaxed);
  if (attached.ok() && isTracing)
    attached = daemonOf(kernel).startMarks();
  share.isAttached.store(attached.ok(), std::memory_order_release);
  return attached;
}

StatusOr<resident::ResidentDaemon *> ResidentRank::attachedDaemon(uint32_t kernel) {
  if (!shares[kernel]->isAttached.load(std::memory_order_acquire)) {
    std::lock_guard lock(registering);
    if (Status attached = attach(kernel); !attached.ok())
      return attached;
  }
  return &daemonOf(kernel);
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

// --- requests ---

StatusOr<std::pair<uint32_t, uint64_t>> ResidentRank::place(daemon::RequestId request) {
  const auto kernel = static_cast<uint32_t>(request % resident::kNumKernels);
  const uint64_t number = request / resident::kNumKernels;
  if (number == 0 || !daemonOf(kernel).isKnown(number - 1))
    return invalid("there is no request " + std::to_string(request));
  return std::pair(kernel, number - 1);
}

void ResidentRank::ended(uint64_t id, const Status &outcome, std::chrono::nanoseconds after) {
  {
    std::lock_guard lock(mutex);
    auto found = sequences.find(id);
    if (found == sequences.end())
      return;
    Sequence &known = *found->second;
    // Epochs of a request end in order.
    if (!known.epochs.empty())
      known.epochs.erase(known.epochs.begin());
    ++(outcome.ok() ? known.completed : known.failed);
    known.noteEnd(outcome.ok());
    if (outcome.ok()) {
      const auto time = static_cast<uint64_t>(after.count());
      known.finishNs += time;
      known.longestFinishNs = std::max(known.longestFinishNs, time);
    }
  }
  // The published waits may be those of this call.
  forgetWaits();
}

// --- callbacks ---

/// Those that never block one at a time, by whoever comes; the others by threads that are there for
/// it.
void ResidentRank::take(Call *call) {
  if (!call->neverBlocks)
    return options.scheduler->callbacks.add({callBackOnThread, call, 0});
  callsUnderWay.fetch_add(1, std::memory_order_relaxed); // this function
  std::unique_lock lock(mutex);
  callbacks.emplace_back(call);
  // Another thread is calling: it takes this callback, too.
  const bool isOthers = std::exchange(isCalling, true);
  if (isOthers) {
    lock.unlock();
    callsUnderWay.fetch_sub(1, std::memory_order_release);
    return;
  }
  while (!callbacks.empty()) {
    std::unique_ptr<Call> next = std::move(callbacks.front());
    callbacks.pop_front();
    lock.unlock();
    callBack(std::move(next));
    lock.lock();
  }
  isCalling = false;
  lock.unlock();
  callsUnderWay.fetch_sub(1, std::memory_order_release);
}

void ResidentRank::callAll(const std::vector<Call *> &ended) {
  for (Call *call : ended)
    take(call);
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
