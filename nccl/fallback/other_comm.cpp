#include "nccl/fallback/other_comm.h"

#include "nccl/base/threads.h"
#include "nccl/streams/streams.h"

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace occl::nccl {

namespace {

/// As the program has given it.
ncclConfig_t configFor(const Config &config) {
  ncclConfig_t made = config.values;
  // The program may have been compiled against a header with a shorter struct; what is missing has
  // been filled with defaults.
  made.size = sizeof(made);
  made.blocking = config.isBlocking;
  made.netName = config.netName.empty() ? nullptr : config.netName.c_str();
  made.commName = config.commName.empty() ? nullptr : config.commName.c_str();
  return made;
}

} // namespace

Outcome OtherComm::settle(ncclResult_t result, const Failure &failure) const {
  // Polls with growing pauses: short ones catch quick calls, longer ones leave the processor to
  // what NCCL does in the background.
  auto wait = std::chrono::microseconds(20);
  constexpr auto kMost = std::chrono::microseconds(2000);
  while (result == ncclInProgress) {
    // Another rank's failure ends the wait, which NCCL alone would continue until its time-out.
    if (failure)
      if (Outcome outcome = failure(); !outcome.ok())
        return outcome;
    std::this_thread::sleep_for(wait);
    wait = std::min(2 * wait, kMost);
    if (Outcome outcome = poll(result); !outcome.ok())
      return outcome;
  }
  return nccl.outcomeOf(result);
}

/// What it says of itself, unless it was aborted.
Outcome OtherComm::poll(ncclResult_t &state) const {
  std::lock_guard lock(living);
  return aborted ? invalidUsage("the communicator was aborted")
                 : nccl.outcomeOf(nccl.ncclCommGetAsyncError(comm, &state));
}

Outcome OtherComm::settle(ncclResult_t result) const { return settle(result, {}); }

Outcome OtherComm::finish(ncclResult_t result, const Failure &failure,
                          std::shared_ptr<OtherComm> &made) {
  // NCCL gives no handle if it refuses, and with some versions also if it claims to work on it.
  if (!made->comm) {
    const bool isMissing = result == ncclSuccess || result == ncclInProgress;
    Outcome outcome =
        isMissing ? Outcome{ncclInternalError, made->nccl.title() + " has made no communicator"}
                  : made->nccl.outcomeOf(result);
    made = nullptr;
    return outcome;
  }
  Outcome outcome = made->settle(result, failure);
  // The call returned at once and goes on in the background: wait until it has ended or failed.
  if (outcome.ok())
    return outcome;
  // A half-made communicator cannot be destroyed, which would wait for the others: only aborted.
  made->abort();
  made = nullptr;
  return outcome;
}

namespace {

/// Between the thread that is in the other library and the one that waits for it, and may give up.
struct Making {
  std::mutex mutex;
  std::condition_variable changed;
  ncclComm_t comm = nullptr;
  Outcome outcome;
  bool isDone = false, isAbandoned = false;
};

void initialize(Making &making, const OtherNccl &nccl, const Config &config,
                const OtherComm::Place &place) {
  // NCCL's call blocks, for minutes if a rank is missing; so it has a thread of its own, and may
  // outlive the caller's interest.
  Outcome outcome = streams().makeCurrent(place.device);
  ncclComm_t comm = nullptr;
  ncclConfig_t with = configFor(config);
  if (outcome.ok())
    outcome = nccl.outcomeOf(nccl.ncclCommInitRankConfig(
        &comm, static_cast<int>(place.numRanks), place.id, static_cast<int>(place.rank), &with));
  // Under the lock: either the caller learns of the communicator, or it has given up before, and
  // nobody else would abort it.
  std::lock_guard lock(making.mutex);
  if (making.isAbandoned && comm)
    nccl.ncclCommAbort(comm);
  making.comm = comm;
  making.outcome = outcome;
  making.isDone = true;
  making.changed.notify_all();
}

} // namespace

Outcome OtherComm::make(const OtherNccl &nccl, const Config &config, const Place &place,
                        const Failure &failure, std::shared_ptr<OtherComm> &made) {
  auto making = std::make_shared<Making>();
  // The state is shared, as the thread may end later than this call.
  startThread([=, &nccl] { initialize(*making, nccl, config, place); });
  constexpr auto kGlance = std::chrono::milliseconds(2);
  std::unique_lock lock(making->mutex);
  while (!making->changed.wait_for(lock, kGlance, [&] { return making->isDone; }))
    if (Outcome outcome = failure(); !outcome.ok()) {
      making->isAbandoned = true;
      return outcome;
    }
  const Outcome outcome = making->outcome;
  if (!outcome.ok() && outcome.result != ncclInProgress)
    return outcome; // of a communicator that could not be made nothing is left
  made.reset(new OtherComm(nccl, config.isBlocking));
  made->comm = making->comm;
  return finish(outcome.result, failure, made);
}

Outcome OtherComm::split(int colour, int key, const Config &config, const Failure &failure,
                         std::shared_ptr<OtherComm> &made) {
  // A function of later versions.
  if (!nccl.ncclCommSplit)
    return invalidUsage(nccl.title() + " has no ncclCommSplit");
  made.reset(new OtherComm(nccl, config.isBlocking));
  ncclConfig_t with = configFor(config);
  const ncclResult_t result = nccl.ncclCommSplit(comm, colour, key, &made->comm, &with);
  // Of a rank without colour, and before there is one, no communicator can be asked but the parent.
  if (colour == NCCL_SPLIT_NOCOLOR || (result == ncclInProgress && !made->comm))
    if (Outcome outcome = settle(result, failure); !outcome.ok()) {
      made = nullptr;
      return outcome;
    }
  if (colour != NCCL_SPLIT_NOCOLOR)
    return finish(result, failure, made);
  made = nullptr;
  return {};
}

Outcome OtherComm::shrink(const std::vector<int> &excluded, int flags, const Config &config,
                          const Failure &failure, std::shared_ptr<OtherComm> &made) {
  if (!nccl.ncclCommShrink)
    return invalidUsage(nccl.title() + " has no ncclCommShrink");
  made.reset(new OtherComm(nccl, config.isBlocking));
  ncclConfig_t with = configFor(config);
  // The list of ranks is copied because NCCL takes it without const.
  std::vector<int> list = excluded;
  const ncclResult_t result = nccl.ncclCommShrink(comm, list.data(), static_cast<int>(list.size()),
                                                  &made->comm, &with, flags);
  return finish(result, failure, made);
}

Outcome OtherComm::grow(const OtherNccl &nccl, ncclComm_t parent, int numRanks,
                        const std::optional<ncclUniqueId> &id, int rank, const Config &config,
                        const Failure &failure, std::shared_ptr<OtherComm> &made) {
  if (!nccl.ncclCommGrow)
    return invalidUsage(nccl.title() + " has no ncclCommGrow");
  made.reset(new OtherComm(nccl, config.isBlocking));
  ncclConfig_t with = configFor(config);
  const ncclResult_t result =
      nccl.ncclCommGrow(parent, numRanks, id ? &*id : nullptr, rank, &made->comm, &with);
  return finish(result, failure, made);
}

OtherComm::~OtherComm() {
  if (!comm || aborted)
    return;
  // A communicator that does not block is destroyed when it is known to have ended.
  if (!isBlocking)
    // ncclCommDestroy blocks unless the communicator was finalised before.
    settle(finalized ? ncclInProgress : nccl.ncclCommFinalize(comm));
  nccl.ncclCommDestroy(comm);
}

Outcome OtherComm::shape(uint32_t &numRanks, uint32_t &rank) const {
  int size = 0, own = 0;
  if (ncclResult_t result = nccl.ncclCommCount(comm, &size); result != ncclSuccess)
    return nccl.outcomeOf(result);
  if (ncclResult_t result = nccl.ncclCommUserRank(comm, &own); result != ncclSuccess)
    return nccl.outcomeOf(result);
  numRanks = static_cast<uint32_t>(size);
  rank = static_cast<uint32_t>(own);
  return {};
}

Outcome OtherComm::asyncError() const {
  ncclResult_t result = ncclSuccess;
  if (Outcome outcome = poll(result); !outcome.ok())
    return outcome;
  return result == ncclInProgress ? Outcome() : nccl.outcomeOf(result);
}

Outcome OtherComm::finalize(bool isWaitedFor) {
  finalized = true;
  const ncclResult_t result = nccl.ncclCommFinalize(comm);
  if (isWaitedFor)
    return settle(result);
  return nccl.outcomeOf(result == ncclInProgress ? ncclSuccess : result);
}

void OtherComm::abort() {
  std::lock_guard lock(living);
  if (!aborted.exchange(true))
    nccl.ncclCommAbort(comm);
}

} // namespace occl::nccl
