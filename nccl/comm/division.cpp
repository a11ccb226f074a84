// Communicators that are made of others.
#include "nccl/comm/division.h"

#include "nccl/abi/exports.h"
#include "nccl/base/environment.h"
#include "nccl/calls/group.h"
#include "nccl/comm/init.h"

namespace occl::nccl {

namespace {

Outcome split(Comm &parent, int colour, int key, ncclComm_t *handle, const ncclConfig_t *given) {
  if (!handle)
    return invalidArgument("newcomm must not be NULL");
  *handle = nullptr;
  if (colour < 0 && colour != NCCL_SPLIT_NOCOLOR)
    return invalidArgument("color is " + std::to_string(colour) +
                           ", must be NCCL_SPLIT_NOCOLOR or not negative");
  // A rank without colour takes part, and has no communicator from it.
  return beginDivision(parent, given, colour == NCCL_SPLIT_NOCOLOR ? nullptr : handle,
                       "colour " + std::to_string(colour) + " of split", parent.numSplit,
                       [=](Comm &old, const Executor &of, Comm &to, Executor &made) -> Outcome {
                         if (of.other)
                           return of.other->split(colour, key, to.config, endOf(to), made.other);
                         uint32_t numRanks = 0;
                         occlCommSize(of.own, &numRanks);
                         const occlConfig_t with = occlConfig(old.device, numRanks, to.config);
                         made.isAcross = of.isAcross;
                         return outcomeOf(occlCommSplit(of.own, colour, key, &with, &made.own));
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
  return beginDivision(parent, given, handle, "shrunk", parent.numShrunk,
                       [=](Comm &old, const Executor &of, Comm &to, Executor &made) -> Outcome {
                         if (of.other)
                           return of.other->shrink({without.begin(), without.end()}, flags,
                                                   to.config, endOf(to), made.other);
                         // Before anything of it ends. So is one whose ranks are all on one
                         // machine, if it is made of one across: OCCL does not shrink it either.
                         if (of.isAcross && !isHostMode())
                           return invalidUsage("communicators of several machines do not shrink on "
                                               "GPUs yet: make one of the ranks that are left");
                         if (flags == NCCL_SHRINK_ABORT)
                           if (Outcome ended = old.endOperations(); !ended.ok())
                             return ended;
                         occlConfig_t with = occlConfig(old.device, numRanks, to.config);
                         if (of.isAcross) // its set-up has the deadline that it had
                           with.timeoutMs = OCCL_NO_TIMEOUT;
                         made.isAcross = of.isAcross;
                         return outcomeOf(occlCommShrink(of.own, without.data(),
                                                         static_cast<uint32_t>(without.size()),
                                                         &with, &made.own));
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
