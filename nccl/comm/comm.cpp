#include "nccl/comm/comm.h"

#include "nccl/base/at_exit.h"
#include "nccl/base/environment.h"
#include "nccl/base/threads.h"
#include "nccl/comm/busy.h"
#include "nccl/fallback/other_comm.h"
#include "support/nvtx/ranges.h"

#include <utility>

namespace occl::nccl {

Comm::~Comm() {
  if (!executor.own)
    return;
  if (executor.isAcross && !isHostMode())
    awaitIdle(executor.own);
  occlCommDestroy(executor.own);
}

void Comm::setShape(uint32_t withRanks, uint32_t asRank) {
  numRanks = withRanks;
  rank = asRank;
  shapeKnown.store(true, std::memory_order_release);
}

void Comm::connectBy(Connect connect) {
  Executor made;
  Outcome outcome;
  try {
    outcome = connect(made);
  } catch (const std::exception &failure) {
    outcome = {ncclInternalError, failure.what()};
  }
  connect = nullptr; // what it holds, another communicator perhaps, may go before this one does
  uint32_t withRanks = 0, asRank = 0;
  if (outcome.ok() && made.other)
    outcome = made.other->shape(withRanks, asRank);
  if (!outcome.ok())
    report("while ranks come together", outcome);
  std::lock_guard lock(mutex);
  if (made.own) {
    occlCommSize(made.own, &withRanks);
    occlCommRank(made.own, &asRank);
  }
  if (!shapeKnown && (made.own || made.other))
    setShape(withRanks, asRank);
  if (aborted && made.other) // which has seen nobody in it
    made.other->abort();
  executor = std::exchange(made, {}); // from here on it ends with the communicator
  state = outcome.ok() ? State::Connected : State::Failed;
  if (error.ok())
    error = outcome;
  changed.notify_all();
}

Outcome Comm::begin(Connect connect) {
  // Ranks that never come hold up the exit no longer than this, and what is freed here than that.
  static constexpr auto kToConnect = std::chrono::seconds(1), kToEnd = std::chrono::seconds(5);
  try {
    auto holds = isHostMode() ? nullptr : std::make_unique<HoldsExit>(kToConnect);
    startThread([self = shared_from_this(), connect = std::move(connect),
                 holds = std::move(holds)]() mutable {
      self->connectBy(std::move(connect));
      // It may be the last one to have it.
      const auto until = holds ? std::make_unique<HoldsExit>(kToEnd) : nullptr;
      self.reset();
      holds.reset();
    });
  } catch (const std::exception &failure) {
    return {ncclSystemError, std::string("no thread could be started: ") + failure.what()};
  }
  return {};
}

Outcome Comm::connected(Executor &with) {
  std::unique_lock lock(mutex);
  return connected(lock, with);
}

Outcome Comm::beginOperations(Executor &with) {
  std::unique_lock lock(mutex);
  Outcome outcome = connected(lock, with);
  if (outcome.ok() && with.own)
    ++inFlight;
  return outcome;
}

Outcome Comm::connected(std::unique_lock<std::mutex> &lock, Executor &with) {
  changed.wait(lock, [&] { return state != State::Connecting || aborted; });
  if (aborted)
    return invalidUsage("the communicator was aborted");
  with = executor;
  return state == State::Failed ? error : Outcome();
}

bool Comm::isConnecting() {
  std::lock_guard lock(mutex);
  return state == State::Connecting;
}

bool Comm::awaitConnected(std::chrono::steady_clock::time_point until) {
  std::unique_lock lock(mutex);
  return changed.wait_until(lock, until, [&] { return state != State::Connecting || aborted; });
}

Outcome Comm::forCall(Executor &with) {
  if (Outcome outcome = connected(with); !outcome.ok() || !with.other)
    return outcome;
  std::unique_lock lock(mutex);
  changed.wait(lock, [&, before = divisionsBegun] { return divisionsEnded >= before || aborted; });
  return aborted ? invalidUsage("the communicator was aborted") : Outcome();
}

std::shared_ptr<OtherComm> Comm::otherIfKnown() {
  {
    std::lock_guard lock(mutex);
    if (!executor.other)
      return nullptr;
  }
  Executor with;
  return forCall(with).ok() ? with.other : nullptr;
}

Outcome Comm::shape(uint32_t &withRanks, uint32_t &asRank) {
  Executor unused;
  if (!shapeIfKnown(withRanks, asRank))
    if (Outcome outcome = connected(unused); !outcome.ok())
      return outcome;
  shapeIfKnown(withRanks, asRank);
  return {};
}

bool Comm::shapeIfKnown(uint32_t &withRanks, uint32_t &asRank) const {
  const bool isKnown = shapeKnown.load(std::memory_order_acquire);
  withRanks = isKnown ? numRanks : 0;
  asRank = isKnown ? rank : 0;
  return isKnown;
}

uint32_t Comm::category() {
  std::lock_guard lock(mutex);
  if (rangeCategory == 0 && shapeKnown)
    rangeCategory = nvtx::addCategory("ncclComm", rank, numRanks);
  return rangeCategory;
}

/// Programs ask again and again. Under the lock.
Outcome Comm::reportOnce(const Outcome &outcome) {
  if (!isErrorReported)
    report("asynchronously", outcome);
  isErrorReported = true;
  return outcome;
}

Outcome Comm::asyncError() {
  std::lock_guard lock(mutex);
  if (error.ok() && executor.other)
    if (Outcome outcome = executor.other->asyncError(); !outcome.ok())
      error = reportOnce(outcome);
  const occlComm_t comm = executor.own;
  if (error.ok() && comm && *occlCommGetLastError(comm)) {
    // Whatever is called then says why, and does nothing.
    occlCall_t nothing = OCCL_CALL_INITIALIZER;
    nothing.kind = occlKindAllReduce;
    error = outcomeOf(occlCall(comm, &nothing, nullptr));
    if (error.ok())
      error = {ncclRemoteError, occlCommGetLastError(comm)};
    reportOnce(error);
  }
  return error;
}

void Comm::fail(const Outcome &outcome) {
  std::lock_guard lock(mutex);
  if (error.ok())
    error = reportOnce(outcome);
  // A call that was refused here alone is one that the others wait for.
  if (executor.own && !*occlCommGetLastError(executor.own))
    occlCommAbort(executor.own);
}

void Comm::awaitDivisions(std::unique_lock<std::mutex> &lock) {
  constexpr std::chrono::milliseconds kPatience = std::chrono::seconds(3), kPatienceAgain{100};
  // Where one was waited for in vain others are likely to be, too: a program that gives up many
  // does not wait for each. One that has just begun is waited for all the same.
  static std::atomic<bool> wasInVain = false;
  const auto isOver = [&] { return aborted || divisionsBegun == divisionsEnded; };
  if (isOver())
    return;
  const bool isOld = std::chrono::steady_clock::now() - lastDivision >= kPatience;
  wasInVain = !changed.wait_for(lock, isOld && wasInVain ? kPatienceAgain : kPatience, isOver);
}

void Comm::abort() {
  // What it is divided into does not end with it, if the others come to that, too.
  Executor with;
  bool isBusy = false;
  {
    std::unique_lock lock(mutex);
    awaitDivisions(lock);
    aborted = true; // nothing more begins
    with = executor;
    isBusy = inFlight > 0 || divisionsBegun != divisionsEnded;
    changed.notify_all();
  }
  if (with.own && (isBusy || (!isHostMode() && isBusyOnDevice(shared_from_this(), with.own))))
    occlCommAbort(with.own);
  if (with.other) // which may take a while
    with.other->abort();
}

void Comm::destroyOther() {
  std::shared_ptr<OtherComm> last; // ends without the lock
  std::lock_guard lock(mutex);
  if (inFlight == 0)
    last = std::exchange(executor.other, nullptr);
}

Outcome Comm::endOperations() {
  Executor with;
  if (Outcome outcome = connected(with); !outcome.ok())
    return outcome;
  std::lock_guard lock(mutex);
  if (error.ok())
    error = invalidUsage("ncclCommShrink with NCCL_SHRINK_ABORT has ended this communicator's "
                         "operations");
  if (with.own)
    occlCommAbort(with.own);
  return {};
}

void Comm::operationsBegin() {
  std::lock_guard lock(mutex);
  ++inFlight;
}

void Comm::operationsEnd() {
  std::lock_guard lock(mutex);
  --inFlight;
  changed.notify_all();
}

void Comm::waitForOperations() {
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return inFlight == 0 || aborted; });
}

Outcome Comm::finalize() {
  {
    std::lock_guard lock(mutex);
    if (finalized)
      return invalidArgument("ncclCommFinalize was called before");
    finalized = true;
  }
  if (config.isBlocking)
    waitForOperations();
  const auto other = otherIfKnown();
  return other ? other->finalize(config.isBlocking) : Outcome();
}

Comm::Turn Comm::nextDivision() {
  std::lock_guard lock(mutex);
  lastDivision = std::chrono::steady_clock::now();
  return {shared_from_this(), divisionsBegun++};
}

void Comm::Turn::await() const {
  std::unique_lock lock(comm->mutex);
  comm->changed.wait(lock, [&] { return comm->divisionsEnded == number; });
}

void Comm::Turn::end() const {
  std::lock_guard lock(comm->mutex);
  ++comm->divisionsEnded;
  comm->changed.notify_all();
}

} // namespace occl::nccl
