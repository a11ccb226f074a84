/* Several collectives as one call: what groups of NCCL and *_coalesced of PyTorch are made of. */
#ifndef OCCL_COALESCED_H
#define OCCL_COALESCED_H

#include "occl.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The same as occlCall for each of numCalls calls, in their order; all ranks give the same calls.
 * *numCalled (may be NULL): the first so many were called, and no other one. Errors are those of
 * occlCall, of the next call or of one that would have been executed as one with it, and
 * occlInvalidArgument if calls, or one of them, is NULL.
 *
 * With occlDeviceCuda neighbours are executed as one collective if they are of one kind without
 * plan and root, one type and operation, and without factor, and if the larger buffer of the one
 * has at most 4 MiB, and of two calls 256 KiB at least: kernels copy their inputs behind each
 * other, and what has come of it to their outputs. So
 * - floating-point sums may have other bits than by occlCall; all ranks have the same;
 * - the shortest deadline that is set counts for all;
 * - inputs are read in the order of the stream alone: what calls in other streams write to them is
 *   ordered by events;
 * - the first list takes 8 MiB for the communicator, of what occlMemAlloc has left or beside it;
 * - ranks agree in which calls have a factor, and in which neighbours access what another one of
 *   them writes: those are executed one after the other, and where ranks differ in that the
 *   communicator fails with occlMismatch.
 * With registeredBuffers each call is executed by itself. */
OCCL_API occlResult_t occlCallCoalesced(occlComm_t comm, const occlCall_t *const *calls,
                                        size_t numCalls, struct CUstream_st *stream,
                                        size_t *numCalled);

#ifdef __cplusplus
}
#endif

#endif /* OCCL_COALESCED_H */
