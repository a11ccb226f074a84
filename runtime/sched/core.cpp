// How invocations and exchanges end: results, callbacks, and the end of all after a failure.
#include "runtime/sched/core.h"

#include "runtime/control/records/announce.h"
#include "runtime/control/records/pair_id.h"
#include "runtime/sync/atomic.h"
#include "runtime/sync/per_thread.h"

#include <algorithm>
#include <new>
#include <string>
#include <utility>

namespace occl::daemon {

namespace {

/// In an entry of the completion queue; the rest is 1 + the request's slot.
constexpr queue::CompletionEntry kNeverBlocks = 1u << 31;
static_assert(RequestTable::kMaxCapacity < kNeverBlocks);

/// Threads in wait(), after an update with sequential consistency.
void ringWaiting(Doorbell &bell) {
  fenceAfterUpdate();
  bell.ringFenced();
}

/// The callbacks that this thread is in, a list on its stack.
struct CallbackScope {
  explicit CallbackScope(const Core &core) : core(core), outer(innermost()) { innermost() = this; }
  ~CallbackScope() { innermost() = outer; }

  static const CallbackScope *&innermost() {
    return pointerOfThisThread<CallbackScope, const CallbackScope>();
  }
  const Core &core;
  const CallbackScope *const outer;
};

} // namespace

Core::Core(std::shared_ptr<Device> device, std::unique_ptr<Fabric> joined, const Options &options)
    : options(options), device(std::move(device)), fabric(std::move(joined)),
      // With a request at most maxInFlight are open, without at most the calls' records.
      place(options.maxInFlight + transport::AnnounceCell::kRecords, stats),
      requests(options.maxInFlight),
      completions(queue::makeCompletionQueue(options.completionForm, options.maxInFlight)),
      awaited(fabric->numRanks()) {}

uint32_t Core::countOpen(bool hasCallback, bool isOwn) {
  if (hasCallback)
    device->openWithCallback.fetch_add(1, std::memory_order_relaxed);
  if (!isOwn)
    Stats::addLocked(stats.requested, 1);
  Stats::addLocked(stats.submitted, 1);
  return device->submissions.add();
}

void Core::open(OpenInvocation &invocation, BlockTask &task, transfer::Operation &operation,
                Exchange &exchange) {
  static const interpreter::Program kNone;
  invocation.core = this;
  invocation.place = &place;
  invocation.operation = &operation;
  invocation.deadline = coarseNow() + options.timeout;
  invocation.times.reset(ticks());
  invocation.view.program = &kNone;
  // No rank announces it, so there is no standing to agree on.
  invocation.announcedBelow.store(fabric->numRanks() + 1, std::memory_order_relaxed);
  invocation.blocksLeft = 1;
  invocation.tasks = {&task, 1};
  invocation.exchange = &exchange;
  invocation.hasCallback = exchange.hasCallback;
  task.renew(invocation);
  invocation.id->counters.submitted.add(1);
  openTransfers.fetch_add(1, std::memory_order_relaxed);
  device->submissions.add();
}

void Core::finish(OpenInvocation &invocation, StatusCode result) {
  // Read first: once it is finished it may become another invocation.
  const RequestId request = invocation.request;
  const bool hasCallback = invocation.hasCallback;
  const bool neverBlocks = invocation.callbacksNeverBlock;
  if (trace.isOn()) {
    Ticks now = ticks();
    insight::TraceEvent event = eventOf(insight::TraceKind::Complete, invocation, now, now);
    event.detail = {static_cast<uint64_t>(result), 0};
    trace.record(event);
  }
  if (invocation.exchange) {
    device->submissions.end();
    return endPart(*invocation.exchange, result);
  }
  invocation.finished.store(true, std::memory_order_release); // from here on it is the admission's
  // The result is visible before the communicator counts it as ended.
  if (request == 0)
    invocation.own.set(result);
  else
    requests.complete(request, result);
  device->submissions.end();
  if (hasCallback)
    return queueCallback(request, neverBlocks);
  Doorbell &bell = device->bell; // the executor's device: it stays
  ended.fetch_add(1, std::memory_order_seq_cst);
  ringWaiting(bell);
}

void Core::endPart(Exchange &exchange, StatusCode result) {
  Doorbell &bell = device->bell; // as above
  const RequestId request = exchange.request;
  if (exchange.endPart(result) && request != 0) {
    std::unique_ptr<Exchange> ended(&exchange);
    requests.complete(request, ended->result());
    if (ended->hasCallback) // which takes over what this part has of openTransfers
      return queueCallback(request, ended->callbackNeverBlocks);
  }
  openTransfers.fetch_sub(1, std::memory_order_seq_cst);
  ringWaiting(bell);
}

void Core::queueCallback(RequestId request, bool neverBlocks) {
  device->openWithCallback.fetch_sub(1, std::memory_order_relaxed);
  // As many places as requests: never full.
  completions->push(RequestTable::slotOf(request) + 1 + (neverBlocks ? kNeverBlocks : 0));
}

void Core::ringReaders(const Collective &collective) const {
  threadFence(std::memory_order_seq_cst);
  for (uint32_t reader : collective.readers)
    if (Doorbell *bell = fabric->doorbells()[reader])
      bell->ringFenced();
}

bool Core::compare(const OpenInvocation &invocation) const {
  if (invocation.collective->compared.empty())
    return true;
  bool isSame = false;
  fabric->failUnless([&] {
    const Status same = compareNeighbours(invocation, *fabric);
    isSame = same.ok();
    return same;
  });
  return isSame;
}

void Core::runCallbacks() {
  if (callbackTurns.fetch_add(1, std::memory_order_acq_rel) != 0)
    return; // who is at it looks again
  // One thread at a time takes callbacks; the count tells it of those that came meanwhile.
  uint32_t seen = 1;
  do {
    while (auto entry = completions->pop()) {
      if (*entry & kNeverBlocks) {
        callBack(*entry);
        continue;
      }
      // The place stays pinned until the callback has returned on its thread.
      place.pin();
      try {
        device->callbacks.add({callBackOnThread, this, *entry});
      } catch (const std::bad_alloc &) {
        callBackOnThread(this, *entry); // here, rather than never
      }
    }
  } while (!callbackTurns.compare_exchange_strong(seen, 0, std::memory_order_acq_rel));
}

void Core::callBack(queue::CompletionEntry entry) {
  CallbackScope scope(*this);
  const Ticks begin = trace.isOn() ? ticks() : 0;
  RequestTable::CallbackEnd end = requests.callBack((entry & ~kNeverBlocks) - 1);
  if (begin != 0) {
    insight::TraceEvent event{.kind = insight::TraceKind::Callback, .begin = begin, .end = ticks()};
    event.collective = end.origin.collective;
    event.ordinal = end.origin.ordinal;
    trace.record(event);
  }
  const bool isOfTransfers = end.origin.collective == transport::kTransferGroups;
  // A callback that has thrown fails the communicator.
  if (!end.status.ok()) {
    fabric->failUnless([&]() -> Status {
      const std::string whose = isOfTransfers ? "a group of transfers"
                                              : "collective " + nameOf(end.origin.collective) +
                                                    ", invocation " +
                                                    std::to_string(end.origin.ordinal) + ",";
      return {StatusCode::CallbackFailed,
              "the callback of " + whose + " threw an exception on rank " +
                  std::to_string(fabric->rank()) + ": " + end.status.message()};
    });
    settleFailure();
  }
  // After this count the communicator may be destroyed, but for the pin.
  if (isOfTransfers)
    openTransfers.fetch_sub(1, std::memory_order_release);
  else
    ended.fetch_add(1, std::memory_order_release);
  device->bell.ring(); // threads that destroy the communicator
}

void Core::callBackOnThread(void *core, queue::CompletionEntry entry) {
  static_cast<Core *>(core)->callBack(entry);
  static_cast<Core *>(core)->place.unpin();
}

bool Core::isCallingBack() const {
  for (const CallbackScope *scope = CallbackScope::innermost(); scope; scope = scope->outer)
    if (&scope->core == this)
      return true;
  return false;
}

/// All ranks know of the failure before they are looked at, whoever has seen it first and how far
/// that one has come with telling the others.
bool Core::areBuffersAccessed() {
  auto isAwaited = [](const Atomic<uint32_t> &rank) {
    return rank.load(std::memory_order_relaxed) != 0;
  };
  if (areBuffersFree.load(std::memory_order_acquire) ||
      std::none_of(awaited.begin(), awaited.end(), isAwaited))
    return false;
  fabric->spreadFailureOf(fabric->rank());
  for (uint32_t r = 0; r < awaited.size(); ++r)
    if (isAwaited(awaited[r]) && fabric->isAccessing(r))
      return true;
  // For good: who counts itself from now on only does so to find out that it must not.
  areBuffersFree.store(true, std::memory_order_release);
  return false;
}

void Core::settleFailure() {
  // The failure is known before the board is looked at; a submission looks the other way round.
  threadFence(std::memory_order_seq_cst);
  if (areBuffersAccessed())
    return;
  const StatusCode code = fabric->failureCode();
  // The board gives them once, when no task is claimed.
  InvocationList open = device->board.abandon(place);
  while (OpenInvocation *invocation = open.take())
    finish(*invocation, code);
  runCallbacks();
}

} // namespace occl::daemon
