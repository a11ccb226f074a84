/* Several collectives as one call: what groups of NCCL and *_coalesced of PyTorch are made of. */
#ifndef OCCL_COALESCED_H
#define OCCL_COALESCED_H

#include "occl.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The same as occlCall for each of numCalls calls, in their order; all ranks give the same calls.
 * *numCalled (may be NULL): of the first so many, all is as occlCall has it when it succeeds; the
 * result is that of the next one, which was not called, nor was any behind it. Errors are those of
 * occlCall, and occlInvalidArgument if calls, or one of them, is NULL.
 *
 * With occlDeviceCuda neighbours of one kind (no plan), type, operation, root and timeout are
 * executed as one collective as long as the larger buffer of it has at most 4 MiB, two of them from
 * 256 KiB on: a kernel copies their inputs behind each other, and another one what has come of it to the outputs. So
 * floating-point sums may have other bits than by occlCall; all ranks have the same. Calls with a
 * factor are executed by themselves, as are all of a communicator with registeredBuffers, and
 * neighbours of which one accesses what another one writes: ranks differ in that at a time, or in
 * where the list ends, and the communicator fails with occlMismatch. The first such list takes
 * 8 MiB of device memory, which the communicator keeps. */
OCCL_API occlResult_t occlCallCoalesced(occlComm_t comm, const occlCall_t *const *calls,
                                        size_t numCalls, struct CUstream_st *stream,
                                        size_t *numCalled);

#ifdef __cplusplus
}
#endif

#endif /* OCCL_COALESCED_H */
