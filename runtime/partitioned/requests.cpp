// Partitioned sends and receives of a rank: made, started, marked, waited for and freed.
#include "runtime/partitioned/requests.h"

#include "runtime/partitioned/marks_trace.h"
#include "runtime/sched/executor.h"
#include "runtime/sched/inside_wait.h"
#include "runtime/sync/clock.h"

#include <algorithm>
#include <mutex>
#include <new>
#include <ranges>
#include <string>
#include <utility>

namespace occl::partitioned {

namespace {

Status invalid(std::string text) { return {StatusCode::InvalidArgument, std::move(text)}; }

Status wrongKind(const Request &request, const char *what) {
  return invalid(std::string(what) + ", and this is a " + request.describe());
}

Status outOfRange(const Request &request, int64_t partition) {
  return invalid(request.describe() + ": there is no partition " + std::to_string(partition) +
                 " of " + std::to_string(request.party.shape.partitions));
}

} // namespace

Status checkCommunicator(const daemon::Core &core, const std::string &what) {
  if (!core.device->options.preemption)
    return invalid(what + " need preemption, which config->preemption has turned off");
  return {};
}

Status checkTerms(const Terms &terms, uint32_t numRanks) {
  const Shape &shape = terms.shape;
  if (terms.peer >= numRanks)
    return invalid("there is no rank " + std::to_string(terms.peer) + " of " +
                   std::to_string(numRanks) + "; partitioned transfers have no wildcards");
  if (!shape.isSound())
    return invalid(shape.describe() + " are too many: at most " + std::to_string(kMostPartitions) +
                   " partitions, and 2^58 elements in all");
  if (!terms.buffer && shape.elements() != 0)
    return invalid("buffer is NULL for " + shape.describe());
  return {};
}

Requests::Requests(daemon::Core &core) : core(core), matching(*core.fabric, core.device->bell) {
  // Between threads a receive accesses the sender's buffer: see Fabric::beginAccess.
  receives.direct.byThisRank = core.fabric->sharesAddresses();
}
Requests::~Requests() = default;

Status Requests::check(const Terms &terms) const {
  if (core.fabric->network())
    return invalid("this communicator spans machines, between which there are no partitioned "
                   "transfers yet; use one within a machine");
  if (Status checked = checkCommunicator(core, "partitioned transfers"); !checked.ok())
    return checked;
  return checkTerms(terms, core.fabric->numRanks());
}

StatusOr<Request *> Requests::make(Terms terms) {
  if (Status checked = check(terms); !checked.ok())
    return checked;
  const daemon::Fabric &fabric = *core.fabric;
  if (fabric.failed())
    return fabric.failure();
  const uint64_t bytes = terms.shape.bytes();
  const bool sharesAddresses = fabric.sharesAddresses() || terms.peer == fabric.rank();
  // The peer reads the buffer where it lies, so it needs a reference that works there.
  if (terms.isSend && bytes != 0) {
    terms.reference = sharesAddresses ? reinterpret_cast<interpreter::Reference>(terms.buffer)
                                      : fabric.referenceTo(terms.buffer, bytes);
    if (terms.reference == 0)
      return invalid("the system does not let this communicator's processes read each other's "
                     "memory: the buffer of a partitioned send has to be of occlMemAlloc");
  }
  // Its buffer is the program's again after a failure only when nobody reads it.
  if (terms.isSend && fabric.sharesAddresses() && terms.peer != fabric.rank())
    core.awaitAfterFailure(terms.peer);
  std::unique_ptr<Request> made;
  if (terms.isSend)
    made = std::make_unique<SendRequest>(core, matching, terms);
  else
    made = std::make_unique<ReceiveRequest>(core, matching, terms);
  // What is not added goes again. One that was matched in vain is taken back before.
  const auto refuse = [this](Request *refused) {
    if (refused->party.serial != 0)
      matching.remove(refused->party);
    drop(*refused);
  };
  std::unique_ptr<Request, decltype(refuse)> kept(keep(std::move(made)), refuse);
  // The peer hears of it here, and may be matched with it at once: nothing that follows may throw.
  Status added = matching.add(kept->party);
  if (added.code() == StatusCode::Again)
    return added;
  if (!added.ok())
    return fail(added);
  if (terms.isSend)
    static_cast<SendRequest &>(*kept).useWords();
  return kept.release();
}

/// In `all`, with room on the board for an epoch.
Request *Requests::keep(std::unique_ptr<Request> made) {
  Request *request = made.get();
  std::lock_guard lock(mutex);
  const auto entry = all.try_emplace(request).first;
  try {
    core.device->board.addRoom(core.place, 1);
  } catch (const std::bad_alloc &) {
    all.erase(entry);
    throw;
  }
  entry->second = std::move(made);
  return request;
}

void Requests::drop(Request &request) {
  std::lock_guard lock(mutex);
  core.device->board.removeRoom(core.place, 1);
  all.erase(&request);
}

/// Of an invocation of which nobody hears but the peer, by words.
Status Requests::start(Request &request) {
  if (core.fabric->failed())
    return core.fabric->failure();
  if (request.active.load(std::memory_order_relaxed) != 0)
    return invalid(request.subject(request.epoch) +
                   " has been started, and not been waited for or tested to its end");
  request.current = std::make_unique<Epoch>();
  const uint64_t epoch = ++request.epoch;
  daemon::OpenInvocation &invocation = request.current->invocation;
  invocation.collective = request.party.isSend ? &sends : &receives;
  invocation.id = &request.sequence;
  invocation.ordinal = epoch;
  // The epoch is over when its one task is, which executes the request itself.
  request.current->exchange.expect(1);
  core.open(invocation, request.current->task, request, request.current->exchange);
  request.party.header->started.store(epoch, std::memory_order_release);
  request.active.store(epoch, std::memory_order_release);
  daemon::InvocationList one;
  one.add(invocation);
  core.device->board.submitTogether(one);
  threadFence(std::memory_order_seq_cst);
  request.peerBell().ringFenced(); // it may wait for this in prepare
  // A failure since the check may have been settled without it.
  if (core.fabric->failed())
    core.settleFailure();
  core.device->wakeFor(false);
  return {};
}

/// Those of a range of integers.
template <class Partitions> Status Requests::mark(Request &request, const Partitions &partitions) {
  if (!request.party.isSend)
    return wrongKind(request, "only partitions of a send are marked ready");
  if (core.fabric->failed())
    return core.fabric->failure();
  const uint64_t epoch = request.active.load(std::memory_order_acquire);
  if (epoch == 0)
    return invalid(request.describe() + " has not been started, so no partition can be ready");
  // Once all marks are counted the request may be freed by another thread, which has waited for it:
  // what is needed then is looked up before.
  Doorbell &bell = request.peerBell();
  const uint32_t peer = request.party.peer;
  const uint64_t tag = request.party.tag;
  MarksTrace trace(core.trace, request.sequence.id, epoch);
  MarksInOneGo marks(static_cast<SendRequest &>(request).marks, epoch);
  uint64_t twice = 0;
  bool isTwice = false;
  for (const auto p : partitions)
    if (marks.mark(static_cast<uint64_t>(p))) {
      trace.add(static_cast<uint64_t>(p));
    } else if (!isTwice) {
      isTwice = true;
      twice = static_cast<uint64_t>(p);
    }
  trace.end();
  if (marks.end())
    bell.ring();
  if (!isTwice)
    return {};
  return invalid("partitioned send to rank " + std::to_string(peer) + ", tag " +
                 std::to_string(tag) + ": partition " + std::to_string(twice) +
                 " is ready already in epoch " + std::to_string(epoch));
}

Status Requests::ready(Request &request, plan::Range range) {
  if (request.party.isSend && range.end > request.party.shape.partitions)
    return outOfRange(request, static_cast<int64_t>(range.end - 1));
  return mark(request, std::views::iota(range.begin, range.end));
}

Status Requests::ready(Request &request, std::span<const int64_t> list) {
  if (request.party.isSend)
    for (const int64_t p : list)
      if (p < 0 || static_cast<uint64_t>(p) >= request.party.shape.partitions)
        return outOfRange(request, p);
  return mark(request, list);
}

StatusOr<bool> Requests::arrived(Request &request, int64_t partition) {
  if (request.party.isSend)
    return wrongKind(request, "only partitions of a receive arrive");
  if (partition < 0 || static_cast<uint64_t>(partition) >= request.party.shape.partitions)
    return outOfRange(request, partition);
  const auto q = static_cast<uint64_t>(partition);
  const uint64_t epoch = request.active.load(std::memory_order_acquire);
  if (epoch == 0 && core.fabric->failed()) // perhaps the last one did not complete
    return core.fabric->failure();
  if (epoch == 0)
    return true;
  const Arrivals &arrivals = static_cast<ReceiveRequest &>(request).arrivals;
  if (arrivals.hasArrived(q, epoch))
    return true;
  daemon::Executor::lookOnce(*core.device); // for programs that only ask
  if (arrivals.hasArrived(q, epoch))
    return true;
  core.device->tick();
  if (core.fabric->failed())
    return core.fabric->failure();
  return false;
}

Status Requests::ended(Request &request) {
  const StatusCode result = request.current->exchange.result();
  request.active.store(0, std::memory_order_release);
  return result == StatusCode::Success ? Status() : core.fabric->failure();
}

Status Requests::test(Request &request) {
  if (request.active.load(std::memory_order_relaxed) == 0)
    return {};
  const daemon::Exchange &exchange = request.current->exchange;
  if (!exchange.isOver())
    daemon::Executor::lookOnce(*core.device);
  if (exchange.isOver())
    return ended(request);
  core.device->tick();
  return {StatusCode::InProgress, request.subject(request.epoch) + " is in progress"};
}

Status Requests::wait(Request &request) {
  if (request.active.load(std::memory_order_relaxed) == 0)
    return {};
  {
    daemon::InsideWait inside(*core.device);
    daemon::Executor(*core.device).runUntil([&] { return request.current->exchange.isOver(); });
  }
  return ended(request);
}

/// After its epoch's task: of a request without partitions, which needs nothing of the peer. Nobody
/// else looks what that says any more, nor at the deadline.
Status Requests::prepareOver(Request &request, uint64_t epoch) {
  const auto deadline = request.current->invocation.deadline;
  Status found;
  daemon::Executor(*core.device).runUntil([&] {
    found = request.lookForStart(epoch);
    return found.code() != StatusCode::InProgress || core.fabric->failed() ||
           coarseNow() >= deadline;
  });
  if (found.ok() || core.fabric->failed())
    return found.ok() ? found : core.fabric->failure();
  if (found.code() == StatusCode::InProgress)
    found = {StatusCode::Timeout, request.subject(epoch) + ": rank " +
                                      std::to_string(request.party.peer) +
                                      " has not started it before its deadline"};
  return fail(found);
}

Status Requests::prepare(Request &request) {
  const uint64_t epoch = request.active.load(std::memory_order_relaxed);
  if (epoch == 0)
    return invalid(request.describe() + " has not been started, so nothing can be prepared");
  // The peer's start is a word that no task waits for, so it is looked at between visits.
  const daemon::Exchange &exchange = request.current->exchange;
  daemon::InsideWait inside(*core.device);
  daemon::Executor(*core.device).runUntil([&] {
    return exchange.isOver() || request.hasPeerStarted(epoch);
  });
  if (request.hasPeerStarted(epoch))
    return {};
  return core.fabric->failed() ? core.fabric->failure() : prepareOver(request, epoch);
}

Status Requests::release(Request &request) {
  const bool isActive = request.active.load(std::memory_order_relaxed) != 0;
  // What a failure has ended need not be waited for.
  if (isActive && !(core.fabric->failed() && request.current->exchange.isOver()))
    return invalid(request.subject(request.epoch) +
                   " is not over: wait for it before the request is freed");
  matching.remove(request.party);
  drop(request);
  return {};
}

Status Requests::fail(const Status &cause) {
  core.fabric->fail(cause);
  core.settleFailure();
  return core.fabric->failure();
}

void Requests::tidy() {
  if (Status looked = matching.lookAtAll(); !looked.ok())
    core.fabric->fail(looked);
}

} // namespace occl::partitioned
