// How communicators end, and what they are asked.
#include "nccl/abi/exports.h"
#include "nccl/base/environment.h"
#include "nccl/calls/group.h"
#include "nccl/comm/ending.h"
#include "nccl/comm/handles.h"

#include <memory>
#include <utility>

using namespace occl::nccl;

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  return inGroup(withComm("ncclCommFinalize", comm, [](Comm &of) { return of.finalize(); }));
}
OCCL_NCCL_SECOND_NAME(ncclCommFinalize);

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  return inGroup(guarded("ncclCommDestroy", [&]() -> Outcome {
    if (!comm || isOfParent(comm))
      return {};
    // What is in flight, and what the group of this thread has of it, ends as it would.
    std::shared_ptr<Comm> last;
    Outcome taken = take(comm, last);
    if (taken.ok() && !isInGroup())
      last->destroyOther();
    if (taken.ok() && !isHostMode())
      endHere(std::move(last));
    return taken;
  }));
}
OCCL_NCCL_SECOND_NAME(ncclCommDestroy);

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  return inGroup(guarded("ncclCommAbort", [&]() -> Outcome {
    if (!comm || isOfParent(comm))
      return {};
    std::shared_ptr<Comm> last;
    Outcome taken = take(comm, last);
    if (!taken.ok())
      return taken;
    last->abort();
    if (!isHostMode())
      endApart(std::move(last));
    return {};
  }));
}
OCCL_NCCL_SECOND_NAME(ncclCommAbort);

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error) {
  return withComm("ncclCommGetAsyncError", comm, [&](Comm &of) -> Outcome {
    if (!error)
      return invalidArgument("asyncError must not be NULL");
    *error = of.asyncError().result;
    return {};
  });
}
OCCL_NCCL_SECOND_NAME(ncclCommGetAsyncError);

namespace {

ncclResult_t ask(const char *function, ncclComm_t comm, int *answer, bool isRank) {
  return withComm(function, comm, [&](Comm &of) -> Outcome {
    if (!answer)
      return invalidArgument("there is no place for the answer: NULL");
    uint32_t numRanks = 0, rank = 0;
    Outcome outcome = of.shape(numRanks, rank);
    if (outcome.ok())
      *answer = static_cast<int>(isRank ? rank : numRanks);
    return outcome;
  });
}

} // namespace

ncclResult_t ncclCommCount(const ncclComm_t comm, int *count) {
  return ask("ncclCommCount", comm, count, false);
}
OCCL_NCCL_SECOND_NAME(ncclCommCount);

ncclResult_t ncclCommUserRank(const ncclComm_t comm, int *rank) {
  return ask("ncclCommUserRank", comm, rank, true);
}
OCCL_NCCL_SECOND_NAME(ncclCommUserRank);

ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int *device) {
  return withComm("ncclCommCuDevice", comm, [&](Comm &of) -> Outcome {
    if (!device)
      return invalidArgument("device must not be NULL");
    *device = of.device;
    return {};
  });
}
OCCL_NCCL_SECOND_NAME(ncclCommCuDevice);
