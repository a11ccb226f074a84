// Functions that OCCL does not do: those of the other library's communicators go there.
#include "nccl/abi/later.h"
#include "nccl/abi/exports.h"
#include "nccl/calls/group.h"
#include "nccl/comm/handles.h"
#include "nccl/fallback/decide.h"
#include "nccl/fallback/other_comm.h"

using namespace occl::nccl;

namespace {

Outcome refuse(const char *name) {
  Outcome refused = invalidUsage(
      "OCCL does not implement this function, and the communicator is OCCL's; with "
      "OCCL_NCCL_FALLBACK=all, on all ranks, communicators are of another NCCL, if there is one");
  noteRefused(name, refused.text);
  return refused;
}

Outcome missing(const OtherNccl &nccl, const char *name) {
  Outcome refused = invalidUsage(nccl.title() + ", which has the communicator, has no " + name);
  noteRefused(name, refused.text);
  return refused;
}

/// call(theirs, their communicator), which returns their result. Waits until it has connected.
template <class Function, class Call>
ncclResult_t withOther(const char *name, Function OtherNccl::*function, ncclComm_t handle,
                       Call call) {
  return inGroup(withComm(name, handle, [&](Comm &comm) -> Outcome {
    Executor executor;
    // Waits until it is known whose the communicator is.
    if (Outcome outcome = comm.forCall(executor); !outcome.ok())
      return outcome;
    if (!executor.other)
      return refuse(name);
    const OtherNccl &nccl = executor.other->nccl;
    // Functions of later versions are looked up by name, and need not be there.
    if (!(nccl.*function))
      return missing(nccl, name);
    return executor.other->settle(call(nccl.*function, executor.other->handle()));
  }));
}

/// Of a window, which is always the other library's: OCCL's are NULL.
template <class Function, class Call>
ncclResult_t ofWindow(const char *name, Function OtherNccl::*function, ncclWindow_t window,
                      Call call) {
  return guarded(name, [&]() -> Outcome {
    const OtherNccl *nccl = otherIfOpen();
    if (!window || !nccl)
      return refuse(name);
    return nccl->*function ? nccl->outcomeOf(call(nccl->*function)) : missing(*nccl, name);
  });
}

} // namespace

#define OCCL_OTHER(name) #name, &OtherNccl::name

ncclResult_t ncclCommMemStats(ncclComm_t comm, int statistic, uint64_t *value) {
  return withOther(OCCL_OTHER(ncclCommMemStats), comm,
                   [&](auto call, ncclComm_t of) { return call(of, statistic, value); });
}
OCCL_NCCL_SECOND_NAME(ncclCommMemStats);

ncclResult_t ncclCommQueryProperties(ncclComm_t comm, void *properties) {
  return withOther(OCCL_OTHER(ncclCommQueryProperties), comm,
                   [&](auto call, ncclComm_t of) { return call(of, properties); });
}
OCCL_NCCL_SECOND_NAME(ncclCommQueryProperties);

ncclResult_t ncclCommResume(ncclComm_t comm) {
  return withOther(OCCL_OTHER(ncclCommResume), comm,
                   [&](auto call, ncclComm_t of) { return call(of); });
}
OCCL_NCCL_SECOND_NAME(ncclCommResume);

ncclResult_t ncclCommRevoke(ncclComm_t comm, int flags) {
  return withOther(OCCL_OTHER(ncclCommRevoke), comm,
                   [&](auto call, ncclComm_t of) { return call(of, flags); });
}
OCCL_NCCL_SECOND_NAME(ncclCommRevoke);

ncclResult_t ncclCommSuspend(ncclComm_t comm, int flags) {
  return withOther(OCCL_OTHER(ncclCommSuspend), comm,
                   [&](auto call, ncclComm_t of) { return call(of, flags); });
}
OCCL_NCCL_SECOND_NAME(ncclCommSuspend);

ncclResult_t ncclDevCommCreate(ncclComm_t comm, const void *requirements, void *deviceComm) {
  return withOther(OCCL_OTHER(ncclDevCommCreate), comm,
                   [&](auto call, ncclComm_t of) { return call(of, requirements, deviceComm); });
}
OCCL_NCCL_SECOND_NAME(ncclDevCommCreate);

ncclResult_t ncclDevCommDestroy(ncclComm_t comm, const void *deviceComm) {
  return withOther(OCCL_OTHER(ncclDevCommDestroy), comm,
                   [&](auto call, ncclComm_t of) { return call(of, deviceComm); });
}
OCCL_NCCL_SECOND_NAME(ncclDevCommDestroy);

ncclResult_t ncclGetLsaMultimemDevicePointer(ncclWindow_t window, size_t offset, void **pointer) {
  return ofWindow(OCCL_OTHER(ncclGetLsaMultimemDevicePointer), window,
                  [&](auto call) { return call(window, offset, pointer); });
}
OCCL_NCCL_SECOND_NAME(ncclGetLsaMultimemDevicePointer);

ncclResult_t ncclGetPeerDevicePointer(ncclWindow_t window, size_t offset, int peer,
                                      void **pointer) {
  return ofWindow(OCCL_OTHER(ncclGetPeerDevicePointer), window,
                  [&](auto call) { return call(window, offset, peer, pointer); });
}
OCCL_NCCL_SECOND_NAME(ncclGetPeerDevicePointer);

ncclResult_t ncclPutSignal(const void *local, size_t count, ncclDataType_t type, int peer,
                           ncclWindow_t peerWindow, size_t offset, int signal, int context,
                           unsigned flags, ncclComm_t comm, cudaStream_t stream) {
  return withOther(OCCL_OTHER(ncclPutSignal), comm, [&](auto call, ncclComm_t of) {
    return call(local, count, type, peer, peerWindow, offset, signal, context, flags, of, stream);
  });
}
OCCL_NCCL_SECOND_NAME(ncclPutSignal);

ncclResult_t ncclSignal(int peer, int signal, int context, unsigned flags, ncclComm_t comm,
                        cudaStream_t stream) {
  return withOther(OCCL_OTHER(ncclSignal), comm, [&](auto call, ncclComm_t of) {
    return call(peer, signal, context, flags, of, stream);
  });
}
OCCL_NCCL_SECOND_NAME(ncclSignal);

ncclResult_t ncclWaitSignal(int numSignals, const void *signals, ncclComm_t comm,
                            cudaStream_t stream) {
  return withOther(OCCL_OTHER(ncclWaitSignal), comm,
                   [&](auto call, ncclComm_t of) { return call(numSignals, signals, of, stream); });
}
OCCL_NCCL_SECOND_NAME(ncclWaitSignal);

ncclResult_t ncclWinGetUserPtr(ncclComm_t comm, ncclWindow_t window, void **pointer) {
  return withOther(OCCL_OTHER(ncclWinGetUserPtr), comm,
                   [&](auto call, ncclComm_t of) { return call(of, window, pointer); });
}
OCCL_NCCL_SECOND_NAME(ncclWinGetUserPtr);
