// Communicators that are made of others.
#include "nccl/abi/exports.h"
#include "nccl/calls/group.h"
#include "nccl/comm/handles.h"
#include "nccl/fallback/other_comm.h"
#include "nccl/streams/streams.h"

namespace occl::nccl {

namespace {

/// A communicator made of `parent` by divide(parent, its executor, the new one's), in parent's next
/// turn.
template <class Divide>
Outcome beginDivision(Comm &parent, const ncclConfig_t *given, ncclComm_t *handle, Divide divide) {
  Config config = parent.config;
  if (Outcome outcome = readConfig(given, config); !outcome.ok())
    return outcome;
  auto comm = std::make_shared<Comm>(config, parent.device);
  comm->ownStream = parent.ownStream;
  const Comm::Turn turn = parent.nextDivision();
  Outcome begun = comm->begin([turn, divide, to = comm.get()](Executor &made) {
    Executor of;
    turn.await();
    Outcome outcome = turn.comm->connected(of);
    if (outcome.ok() && of.other)
      outcome = streams().makeCurrent(turn.comm->device);
    if (outcome.ok())
      outcome = divide(*turn.comm, of, *to, made);
    turn.end();
    return outcome;
  });
  if (!begun.ok()) {
    turn.await(); // later divisions go on
    turn.end();
    return begun;
  }
  if (handle)
    *handle = addHandle(comm);
  return {};
}

/// What ends the making of the other library's communicator.
OtherComm::Failure endOf(Comm &comm) {
  return [&comm] {
    return comm.isAborted() ? invalidUsage("the communicator was aborted") : Outcome();
  };
}

Outcome split(Comm &parent, int colour, int key, ncclComm_t *handle, const ncclConfig_t *given) {
  if (!handle)
    return invalidArgument("newcomm must not be NULL");
  *handle = nullptr;
  if (colour < 0 && colour != NCCL_SPLIT_NOCOLOR)
    return invalidArgument("color is " + std::to_string(colour) +
                           ", must be NCCL_SPLIT_NOCOLOR or not negative");
  // A rank without colour takes part, and has no communicator from it.
  return beginDivision(
      parent, given, colour == NCCL_SPLIT_NOCOLOR ? nullptr : handle,
      [=](Comm &, const Executor &of, Comm &to, Executor &made) {
        return of.other ? of.other->split(colour, key, to.config, endOf(to), made.other)
                        : outcomeOf(occlCommSplit(of.own, colour, key, nullptr, &made.own));
      });
}

Outcome shrink(Comm &parent, const int *excluded, int numExcluded, ncclComm_t *handle,
               const ncclConfig_t *given, int flags) {
  if (!handle)
    return invalidArgument("newcomm must not be NULL");
  *handle = nullptr;
  if (flags != NCCL_SHRINK_DEFAULT && flags != NCCL_SHRINK_ABORT)
    return invalidArgument("shrinkFlags is " + std::to_string(flags) +
                           ", neither NCCL_SHRINK_DEFAULT nor NCCL_SHRINK_ABORT");
  if (numExcluded < 1 || !excluded)
    return invalidArgument("excludeRanksList names the ranks to leave out, one at least");
  uint32_t numRanks = 0, rank = 0;
  if (Outcome outcome = parent.shape(numRanks, rank); !outcome.ok())
    return outcome;
  std::vector<uint32_t> without;
  for (int i = 0; i < numExcluded; ++i) {
    const auto other = static_cast<uint32_t>(excluded[i]);
    if (excluded[i] < 0 || other >= numRanks || other == rank)
      return invalidArgument("excludeRanksList has rank " + std::to_string(excluded[i]) +
                             (other == rank ? ", which calls" : ", which there is not"));
    without.push_back(other);
  }
  return beginDivision(parent, given, handle,
                       [=](Comm &old, const Executor &of, Comm &to, Executor &made) -> Outcome {
                         if (of.other)
                           return of.other->shrink({without.begin(), without.end()}, flags,
                                                   to.config, endOf(to), made.other);
                         if (flags == NCCL_SHRINK_ABORT)
                           if (Outcome ended = old.endOperations(); !ended.ok())
                             return ended;
                         return outcomeOf(occlCommShrink(of.own, without.data(),
                                                         static_cast<uint32_t>(without.size()),
                                                         nullptr, &made.own));
                       });
}

} // namespace

} // namespace occl::nccl

using namespace occl::nccl;

ncclResult_t ncclCommSplit(ncclComm_t comm, int colour, int key, ncclComm_t *newComm,
                           ncclConfig_t *config) {
  return inGroup(withComm("ncclCommSplit", comm,
                          [&](Comm &of) { return split(of, colour, key, newComm, config); }));
}
OCCL_NCCL_SECOND_NAME(ncclCommSplit);

ncclResult_t ncclCommShrink(ncclComm_t comm, int *excluded, int numExcluded, ncclComm_t *newComm,
                            ncclConfig_t *config, int flags) {
  return inGroup(withComm("ncclCommShrink", comm, [&](Comm &of) {
    return shrink(of, excluded, numExcluded, newComm, config, flags);
  }));
}
OCCL_NCCL_SECOND_NAME(ncclCommShrink);
