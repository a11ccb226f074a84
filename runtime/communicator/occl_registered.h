/* Registered collectives of communicators on CUDA devices: submitted asynchronously, in any order,
 * or enqueued in streams. occlCall (occl.h) needs no registration; occlStart is not there yet for
 * such communicators, and this is what there is in its place. On hosts every function here is
 * occlInvalidArgument. */
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
      callbacksNeverBlock;   /* 1: its callbacks return at once, so whoever completes an invocation
                                runs them: a thread of the library or one inside occlWait, occlTest,
                                occlSubmit or occlCommAbort. One at a time, in the order in which
                                invocations ended; faster by a change of thread. One that blocks all
                                the same holds up the other callbacks of its rank */
  uint32_t stayMicroseconds; /* with occlDeviceCuda: for how long after an occlEnqueueAndWait with
                                OCCL_NO_STREAM its kernel stays on the device for the next one, with
                                all its thread blocks; at most 10000. 0: there are no such calls */
} occlCollective_t;
#define OCCL_COLLECTIVE_INITIALIZER                                                                \
  { sizeof(occlCollective_t), 0, NULL, NULL, 0, 0, occlFloat32, occlSum, 0, 0, 0, 0 }

/* At most 16384 are registered at once; one more is occlInvalidArgument. */
OCCL_API occlResult_t occlRegister(occlComm_t comm, const occlCollective_t *collective);
/* Only when none of its invocations is in flight on this rank, nor a replay that has begun; else
 * occlInvalidArgument. Ids may come and go for ever and be used again, also by some ranks earlier
 * than by others: invocations of an id are paired in the order of submission, over all its
 * registrations. What it holds of shared memory comes back once all ranks have deregistered it
 * after equally many invocations. */
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
 * k-th submission of an id on a rank belongs to the k-th on the others, whatever was enqueued. */
OCCL_API occlResult_t occlSubmit(occlComm_t comm, uint64_t id, const void *sendBuffer,
                                 void *recvBuffer, occlCallback_t callback, void *user,
                                 occlRequest_t *request);
/* occlSubmit without callback and occlWait in one, for programs that would wait at once: starts an
 * invocation and executes what is in flight on this rank's device until it is complete. Takes less
 * time than the two calls, and no request, so a call cannot run out of them. Results: those of
 * both; after occlAgain nothing was done. */
OCCL_API occlResult_t occlRun(occlComm_t comm, uint64_t id, const void *sendBuffer,
                              void *recvBuffer);
/* --- Collectives in CUDA streams: communicators whose deviceKind is occlDeviceCuda. What is
 * enqueued is not counted by occlCommGetStats and its like, and not in reports or traces. */

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
 * occlEnqueue), and for communicators on hosts. occlAgain as occlSubmit. May take as long as the
 * stream's queue is full. The first submission of a collective copies its tables to the device. */
OCCL_API occlResult_t occlSubmitOnStream(occlComm_t comm, uint64_t id, const void *sendBuffer,
                                         void *recvBuffer, struct CUstream_st *stream,
                                         occlCallback_t callback, void *user,
                                         occlRequest_t *request);
/* One invocation as the next work of a stream (a cudaStream_t) of the rank's device; buffers are
 * memory of that device, else occlInvalidArgument says what they are, and overlap only in place as
 * the plan says, as for occlSubmit. Returns at once. Invocations of an id are paired in the order
 * of these calls and run one after the other, whatever their streams. Under stream capture the call
 * becomes a node of the graph: the k-th captured call of an id on a rank that succeeds belongs to
 * the k-th on the others, it has connectors of its own, and its replays are paired in order. One
 * replay of a captured call runs at a time: with the graph instantiated twice, or a child of two
 * graphs, a second one that begins beside the first fails the communicator with
 * occlInvalidArgument. A graph must not be launched again after occlDeregister of its collectives.
 * When the collective's timeout passes, when a rank is gone, and after occlCommAbort the kernels
 * leave, the output is undefined, and every later call returns why (occlCommGetLastError). So it is
 * after an error of CUDA that ends all work of a process on its device, whosever kernel made it:
 * occlSystemError names the rank and the error. Plans with direct access work on buffers of
 * occlMemAlloc; others are copied to and from such memory. occlAgain: no device memory is left for
 * a captured call or for that copy. An error leaves the stream as it was; if CUDA refuses one of
 * the copies when something else of the call is in the stream already, the communicator fails. No
 * lock is held in CUDA's calls but the id's own: while CUDA makes a thread wait, since a stream's
 * queue is full, others can enqueue other ids.
 *
 * Collectives in conflicting orders, in several streams, complete as long as
 * - fewer streams of the process than CUDA_DEVICE_MAX_CONNECTIONS (8, at most 32) wait on the
 *   device, counting those that wait for an event behind such a stream. With 1, as some programs
 *   set it, all ranks keep one order;
 * - none of the streams is the legacy default stream or waits for it (streams of cudaStreamCreate
 *   do): CUDA runs those one after the other. Nor does CUDA do so with branches of a graph;
 * - the kernels that wait find room on the device beside what else runs there: see docs/gpu.md for
 *   how much LL and LL128 plans take, and occlConfig_t::streams; all communicators, and with MPS
 *   all processes, count together. A kernel that needs every multiprocessor gets them when nothing
 *   waits;
 * - threads that enqueue are not held up by what waits: cudaFree, cudaMalloc and
 *   cudaDeviceSynchronize may wait for it, as may the first launch of any kernel of the program
 *   (CUDA loads it then: set CUDA_MODULE_LOADING=EAGER); CUDA_LAUNCH_BLOCKING, profilers and
 * compute-sanitizer have every launch wait. Otherwise collectives wait for ever or end at their
 * timeout. What waits for long is said on standard error, with the number of streams that wait if
 * that has reached the limit. */
OCCL_API occlResult_t occlEnqueue(occlComm_t comm, uint64_t id, const void *sendBuffer,
                                  void *recvBuffer, struct CUstream_st *stream);
/* occlEnqueue, and waits until the invocation has ended on this rank; returns its result. In less
 * time than with cudaStreamSynchronize: the kernel tells this thread itself. Afterwards the output
 * may be read by whatever is started then, in any stream, and the input written. Pairs with the
 * occlEnqueue and occlEnqueueAndWait calls of the id on other ranks. Nothing is locked while it
 * waits, so other threads may call what they like; but it can wait for no more than occlEnqueue
 * promises: threads that wait for collectives in orders that conflict between ranks need a stream
 * each, and one thread that waits for one after the other needs the other ranks to keep its order.
 * Waits for earlier work of the stream, too, which counts against the timeout, if there is one: one
 * second after it the communicator fails with occlTimeout at the latest. After an error kernels and
 * copies may still access the buffers until the stream has come by. occlAgain as occlEnqueue, and
 * while 64 threads wait so. occlInvalidArgument while the stream is captured. With OCCL_NO_STREAM,
 * for collectives registered with stayMicroseconds, the order of no stream counts: what writes the
 * input must be complete, as for occlRun. Afterwards the kernel of a small collective (LL and
 * LL128, in steps of up to 30 KiB a thread block) waits on the device for the next such call, whose
 * buffers may be others, and which then needs no launch: that halves the time of a call. It leaves
 * when none has come for stayMicroseconds, and after 20 ms in any case; until then
 * cudaDeviceSynchronize, cudaFree and occlDeregister wait for it. Larger ones are launched each
 * time, in a stream of their own. */
#define OCCL_NO_STREAM ((struct CUstream_st *)-1)
OCCL_API occlResult_t occlEnqueueAndWait(occlComm_t comm, uint64_t id, const void *sendBuffer,
                                         void *recvBuffer, struct CUstream_st *stream);

#ifdef __cplusplus
}
#endif

#endif /* OCCL_REGISTERED_H */
