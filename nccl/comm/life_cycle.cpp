// How communicators end, and what they are asked.
#include "nccl/abi/exports.h"
#include "nccl/base/at_exit.h"
#include "nccl/base/environment.h"
#include "nccl/base/threads.h"
#include "nccl/calls/group.h"
#include "nccl/comm/handles.h"

#include <chrono>
#include <future>
#include <memory>
#include <thread>
#include <utility>

using namespace occl::nccl;

namespace {

using namespace std::chrono_literals;

/// Ends it on a thread of its own, as what is freed of a device may have to wait for the device;
/// waits for that, but not for long.
void endApart(std::shared_ptr<Comm> last) {
  // The device is given two seconds to become idle.
  constexpr auto kPatience = 3s, kPatienceAtExit = 5s;
  auto holds = std::make_shared<HoldsExit>(kPatienceAtExit);
  auto over = std::make_shared<std::promise<void>>();
  const std::future<void> isOver = over->get_future();
  startThread([last = std::move(last), holds = std::move(holds), over]() mutable {
    last.reset();
    holds.reset();
    over->set_value();
  });
  isOver.wait_for(kPatience);
}

/// Waits until it is the caller's alone, so that what it has of a device is freed now and here, and
/// not beside what the program does next: while CUDA waits for kernels to end, to free memory, it
/// starts none, and one that runs may need one of another rank of this process. Ranks that never
/// come are not waited for for ever: then the thread frees it that waits for them.
void awaitOthersOf(const std::shared_ptr<Comm> &last) {
  const auto until = std::chrono::steady_clock::now() + 10s;
  last->awaitConnected(until);
  // That thread lets go of it right after; a group of this one at its end.
  while (!isInGroup() && last.use_count() > 1 && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(20us);
}

} // namespace

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
      awaitOthersOf(last);
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
