/* Registered collectives of communicators on CUDA devices: submitted asynchronously, in any order.
 * occlCall (occl.h) needs no registration; occlStart is not there yet for such communicators, and
 * this is what there is in its place. On hosts every function here is occlInvalidArgument. */
#ifndef OCCL_REGISTERED_H
#define OCCL_REGISTERED_H

#include "occl.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What is registered. */
typedef struct {
  size_t size;      /* sizeof(occlCollective_t) */
  uint64_t id;      /* the same on all ranks; names the collective */
  const char *name; /* for reports; may be NULL */
  const occlPlan_t
      *plans; /* several versions: the first whose byte range holds count * element size is taken */
  uint32_t numPlans;
  uint64_t
      count; /* elements of one part: all-reduce, broadcast, reduce, scan: of the buffer;
                all-gather, gather: of the input; reduce-scatter, scatter: of the output;
                all-to-all: of what goes to one rank; with parts of different sizes: of a chunk */
  occlDataType_t dataType;
  occlRedOp_t op;     /* ignored where the plan reduces nothing; a scan has no occlAvg */
  int32_t priority;   /* larger is more urgent; default 0. The highest that a rank gives it counts
                         on all, as soon as that rank has submitted it */
  uint32_t timeoutMs; /* deadline, from submission; 0: the communicator's, OCCL_NO_TIMEOUT: none */
  uint32_t
      callbacksNeverBlock; /* 1: its callbacks return at once, so whoever completes an invocation
                              runs them: a thread of the library or one inside occlWait, occlTest,
                              occlSubmit or occlCommAbort. One at a time, in the order in which
                              invocations ended; faster by a change of thread. One that blocks all
                              the same holds up the other callbacks of its rank */
} occlCollective_t;
#define OCCL_COLLECTIVE_INITIALIZER                                                                \
  { sizeof(occlCollective_t), 0, NULL, NULL, 0, 0, occlFloat32, occlSum, 0, 0, 0 }

/* Nothing is taken, nor agreed with the other ranks, before the first submission: that a plan does
 * not suit the device, that ranks disagree (occlMismatch), and that memory is missing or too many
 * are in use (occlAgain), occlSubmit says. */
OCCL_API occlResult_t occlRegister(occlComm_t comm, const occlCollective_t *collective);
/* Only when none of its invocations is in flight on this rank; else occlInvalidArgument. Ids may
 * come and go for ever and be used again, also by some ranks earlier than by others: invocations of
 * an id are paired in the order of submission, over all its registrations. What it holds of shared
 * memory comes back once all ranks have deregistered it after equally many invocations. */
OCCL_API occlResult_t occlDeregister(occlComm_t comm, uint64_t id);
/* Starts an invocation. Buffers stay the caller's and untouched by it until completion; in place if
 * the two overlap as the collective's alias mode says. callback and request may be NULL, not both.
 * occlAgain: too much is in flight, here or because a peer has not finished former invocations;
 * occlGetLastError() names the holders. Call again after a completion, or after occlTest of any
 * request that is in flight, or a little later. A small collective with a callback is begun at
 * once, by the caller, who waits for data of its peers for some microseconds at most.
 * With occlDeviceCuda the resident daemon of the rank's device executes it, a kernel that leaves
 * when there is nothing to do: buffers are memory of that device, and what writes the input must be
 * complete, as no stream's order counts. Plans with direct access need buffers of occlMemAlloc. The
 * k-th submission of an id on a rank belongs to the k-th on the others. */
OCCL_API occlResult_t occlSubmit(occlComm_t comm, uint64_t id, const void *sendBuffer,
                                 void *recvBuffer, occlCallback_t callback, void *user,
                                 occlRequest_t *request);
/* occlSubmit without callback and occlWait in one, for programs that would wait at once: starts an
 * invocation and executes what is in flight on this rank's device until it is complete. Takes less
 * time than the two calls, and no request, so a call cannot run out of them. Results: those of
 * both; after occlAgain nothing was done. */
OCCL_API occlResult_t occlRun(occlComm_t comm, uint64_t id, const void *sendBuffer,
                              void *recvBuffer);
/* occlSubmit in the order of a stream (a cudaStream_t): the resident daemon begins the invocation
 * when the work before this call in the stream is done, and what follows in the stream waits until
 * the invocation has ended. Buffers are the invocation's until then. While the stream waits no
 * kernel of it is on the device; one thread block of the daemon stays there. With
 * occlConfig_t::strict none does: executors come about every two milliseconds and look whether
 * something can go on, for half a millisecond, so that kernels that need the whole device get it in
 * between. One stays all the same when the streams of this process that wait on the device are as
 * many as CUDA_DEVICE_MAX_CONNECTIONS. Free no memory of the device then while a stream waits:
 * cudaFree waits for the stream, and keeps executors from coming. Invocations submitted
 * to several streams may conflict in order, as long as fewer streams than
 * CUDA_DEVICE_MAX_CONNECTIONS wait for invocations that other ranks have not come to; within one
 * stream all ranks keep one order. The k-th submission of an id belongs to the k-th on the others,
 * by whatever call and in whichever stream. The timeout begins when the stream has come so far.
 * Executors need a multiprocessor each: while the user's kernels have all of them, nothing moves,
 * and a deadline that passes fails this communicator alone. An invocation that ends badly (timeout,
 * abort, a rank that is gone) lets the stream go on within seconds, with its output undefined:
 * occlWait and the callback say so, and occlCommGetLastError. callback and request may both be
 * NULL. occlInvalidArgument while the stream is captured (a graph would submit it once alone; see
 * occlCall), and for communicators on hosts. occlAgain as occlSubmit. May take as long as the
 * stream's queue is full. The first submission of a collective copies its tables to the device. */
OCCL_API occlResult_t occlSubmitOnStream(occlComm_t comm, uint64_t id, const void *sendBuffer,
                                         void *recvBuffer, struct CUstream_st *stream,
                                         occlCallback_t callback, void *user,
                                         occlRequest_t *request);
#ifdef __cplusplus
}
#endif

#endif /* OCCL_REGISTERED_H */
