#include "nccl/comm.h"

#include "nccl/environment.h"

#include <map>
#include <system_error>
#include <thread>
#include <unistd.h>

namespace occl::nccl {

Comm::~Comm() {
  if (comm)
    occlCommDestroy(comm);
}

void Comm::setShape(uint32_t withRanks, uint32_t asRank) {
  std::lock_guard lock(mutex);
  numRanks = withRanks;
  rank = asRank;
  shapeKnown = true;
}

Outcome Comm::begin(Connect connect) {
  auto body = [self = shared_from_this(), connect = std::move(connect)]() mutable {
    occlComm_t made = nullptr;
    Outcome outcome;
    try {
      outcome = connect(made);
    } catch (const std::exception &failure) {
      outcome = {ncclInternalError, failure.what()};
    }
    connect = nullptr; // what it holds, another communicator perhaps, may go before this one does
    if (!outcome.ok())
      report("while ranks come together", outcome);
    std::lock_guard lock(self->mutex);
    if (made) {
      self->comm = made;
      occlCommSize(made, &self->numRanks);
      occlCommRank(made, &self->rank);
      self->shapeKnown = true;
    }
    self->state = outcome.ok() ? State::Connected : State::Failed;
    if (self->error.ok())
      self->error = outcome;
    self->changed.notify_all();
  };
  try {
    std::thread(std::move(body)).detach();
  } catch (const std::system_error &failure) {
    return {ncclSystemError, std::string("no thread could be started: ") + failure.what()};
  }
  return {};
}

Outcome Comm::connected(occlComm_t &connectedComm) {
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return state != State::Connecting || aborted; });
  if (aborted)
    return invalidUsage("the communicator was aborted");
  connectedComm = comm;
  return state == State::Failed ? error : Outcome();
}

Outcome Comm::shape(uint32_t &withRanks, uint32_t &asRank) {
  occlComm_t unused = nullptr;
  if (!shapeIfKnown(withRanks, asRank))
    if (Outcome outcome = connected(unused); !outcome.ok())
      return outcome;
  shapeIfKnown(withRanks, asRank);
  return {};
}

bool Comm::shapeIfKnown(uint32_t &withRanks, uint32_t &asRank) const {
  std::lock_guard lock(mutex);
  withRanks = numRanks;
  asRank = rank;
  return shapeKnown;
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
  if (comm && !*occlCommGetLastError(comm))
    occlCommAbort(comm);
}

void Comm::abort() {
  std::lock_guard lock(mutex);
  aborted = true;
  if (comm && (inFlight > 0 || unseen))
    occlCommAbort(comm);
  changed.notify_all();
}

Outcome Comm::endOperations() {
  occlComm_t unused = nullptr;
  if (Outcome outcome = connected(unused); !outcome.ok())
    return outcome;
  std::lock_guard lock(mutex);
  if (error.ok())
    error = invalidUsage("ncclCommShrink with NCCL_SHRINK_ABORT has ended this communicator's "
                         "operations");
  occlCommAbort(comm);
  return {};
}

void Comm::operationsAreUnseen() {
  std::lock_guard lock(mutex);
  unseen = true;
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
  return {};
}

bool Comm::isFinalized() const {
  std::lock_guard lock(mutex);
  return finalized;
}

Comm::Turn Comm::nextDivision() {
  std::lock_guard lock(mutex);
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

namespace {

struct Handles {
  std::mutex mutex;
  uintptr_t next = 0;
  std::atomic<pid_t> process = 0;
  std::map<ncclComm_t, std::shared_ptr<Comm>> comms;
};

/// Never destroyed: communicators that a program leaks do not hold up its exit.
Handles &handles() {
  static Handles *all = new Handles;
  return *all;
}

Outcome lookUp(ncclComm_t handle, bool take, std::shared_ptr<Comm> &comm) {
  if (!handle)
    return invalidArgument("comm must not be NULL");
  if (isForkedChild())
    return invalidUsage("comm belongs to the process that this one was forked from");
  std::lock_guard lock(handles().mutex);
  auto found = handles().comms.find(handle);
  if (found == handles().comms.end())
    return invalidArgument("comm is no communicator, or was destroyed or aborted");
  comm = found->second;
  if (take)
    handles().comms.erase(found);
  return {};
}

} // namespace

ncclComm_t addHandle(std::shared_ptr<Comm> comm) {
  std::lock_guard lock(handles().mutex);
  handles().process = getpid();
  // Like addresses that cannot be accessed, and unlike small numbers that a program stores there.
  constexpr uintptr_t kFirst = 0x0cc1000000000, kStep = 16;
  auto handle = reinterpret_cast<ncclComm_t>(kFirst + handles().next++ * kStep);
  handles().comms.emplace(handle, std::move(comm));
  return handle;
}

Outcome find(ncclComm_t handle, std::shared_ptr<Comm> &comm) { return lookUp(handle, false, comm); }

Outcome take(ncclComm_t handle, std::shared_ptr<Comm> &comm) { return lookUp(handle, true, comm); }

bool isForkedChild() { return handles().process != 0 && handles().process != getpid(); }

} // namespace occl::nccl
