// Functions of NCCL's 2.28 device header, and of later versions, most of which OCCL does not do
// itself. Of their structs only addresses are passed on.
#pragma once

#include "nccl/nccl_abi.h"

#include <cstdint>

extern "C" {

ncclResult_t ncclCommGetUniqueId(ncclComm_t comm, ncclUniqueId *id);
ncclResult_t ncclCommGrow(ncclComm_t comm, int numRanks, const ncclUniqueId *id, int rank,
                          ncclComm_t *newComm, ncclConfig_t *config);
ncclResult_t ncclCommMemStats(ncclComm_t comm, int statistic, uint64_t *value);
ncclResult_t ncclCommQueryProperties(ncclComm_t comm, void *properties);
ncclResult_t ncclCommResume(ncclComm_t comm);
ncclResult_t ncclCommRevoke(ncclComm_t comm, int flags);
ncclResult_t ncclCommSuspend(ncclComm_t comm, int flags);
ncclResult_t ncclDevCommCreate(ncclComm_t comm, const void *requirements, void *deviceComm);
ncclResult_t ncclDevCommDestroy(ncclComm_t comm, const void *deviceComm);
ncclResult_t ncclGetLsaMultimemDevicePointer(ncclWindow_t window, size_t offset, void **pointer);
ncclResult_t ncclGetPeerDevicePointer(ncclWindow_t window, size_t offset, int peer, void **pointer);
ncclResult_t ncclPutSignal(const void *local, size_t count, ncclDataType_t type, int peer,
                           ncclWindow_t peerWindow, size_t offset, int signal, int context,
                           unsigned flags, ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclSignal(int peer, int signal, int context, unsigned flags, ncclComm_t comm,
                        cudaStream_t stream);
ncclResult_t ncclWaitSignal(int numSignals, const void *signals, ncclComm_t comm,
                            cudaStream_t stream);
ncclResult_t ncclWinGetUserPtr(ncclComm_t comm, ncclWindow_t window, void **pointer);

} // extern "C"
