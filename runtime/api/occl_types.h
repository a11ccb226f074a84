/* Results, element types, operations, the settings of a communicator, and what a call is. Part of
 * occl.h. */
#ifndef OCCL_TYPES_H
#define OCCL_TYPES_H

#include <stddef.h>
#include <stdint.h>

/* As a timeout: none. */
#define OCCL_NO_TIMEOUT UINT32_MAX

typedef enum {
  occlSuccess = 0,
  occlAgain =
      1, /* no resource is free now; nothing was done. Wait for a completion, then call again. */
  occlInProgress = 2,      /* occlTest: not complete yet */
  occlInvalidArgument = 3, /* the call is wrong; nothing was done */
  occlInvalidPlan = 4,     /* the plan is damaged, wrong, or not for this communicator */
  occlMismatch = 5,        /* ranks disagree: plan, count, type or operation of a collective */
  occlTimeout = 6,         /* a deadline passed */
  occlAborted = 7,         /* occlCommAbort was called on some rank */
  occlPeerFailed = 8,      /* a rank is gone that is needed: its process or its communicator */
  occlDeadlock = 9,        /* only with preemption off: the ranks wait for each other in a cycle */
  occlSystemError = 10,    /* the operating system refused: memory, shared memory, threads, files */
  occlInternalError = 11,
  occlCallbackFailed = 12 /* a callback threw a C++ exception, on some rank */
} occlResult_t;

typedef enum {
  occlUint8 = 0,
  occlInt32 = 1,
  occlInt64 = 2,
  occlFloat16 = 3,
  occlBfloat16 = 4,
  occlFloat32 = 5,
  occlFloat64 = 6,
  occlFloat8E4m3 = 7, /* no infinity, up to 448 */
  occlFloat8E5m2 = 8, /* up to 57344 */
  occlInt8 = 9,
  occlUint32 = 10,
  occlUint64 = 11
} occlDataType_t;

/* Integers wrap around. Floats of 8 and 16 bits are added and multiplied as floats, and rounded
 * once an instruction of the plan. Minimum and maximum are NaN if an input is. Averages of integers
 * are the sum, which may have wrapped around, divided by the number of ranks, towards zero.
 * Averages of floats divide each input by it, rounded, and add: so partial sums are no larger than
 * the largest input, but for rounding. They divide partial sums for plans of the caller's own that
 * run in place only or promise copies beside reductions.
 *
 * An input that is multiplied (occlCall_t::scalar), one of an average of floats for a plan of the
 * caller's own with partial sums, and one in place if the plan is valid out of place only (as of
 * all-to-alls), is read by the thread that calls, before occlStart returns, into as much memory of
 * the library: it must not be the output of what is in flight. The library keeps the memory for
 * later calls; for an input in memory of occlMemAlloc, between processes, it is such memory as
 * well, until a later call of the same kind.
 *
 * With occlDeviceCuda averages of occlBfloat16, occlFloat32 and occlFloat64 divide the sum, which
 * has to be in the type's range; so do others where a plan has no partial sums, as they are added
 * in float. A small kernel reads inputs that are multiplied, those of other averages, and those in
 * place: in the order of the call's stream, or, of occlStart without a stream, before that returns.
 * It stores into memory of heapBytes: calls in streams share as much as the largest needs (of plans
 * that access no other rank's buffers also memory of cudaMalloc), which the communicator keeps;
 * each call of occlStart has its own until it is complete. */
typedef enum { occlSum = 0, occlProd = 1, occlMin = 2, occlMax = 3, occlAvg = 4 } occlRedOp_t;

/* In which order executors, of hosts or of the resident daemon of a device, turn to what is in
 * flight: the same on all ranks of a communicator. Calls in streams run in their streams' order. */
typedef enum {
  occlOrderPriority = 1, /* larger priorities first, equal ones first in, first out; default */
  occlOrderFifo = 2,     /* first in, first out, whatever the priorities */
  occlOrderNewest = 3    /* the newest first */
} occlOrderPolicy_t;

/* How long what does not move is polled before the next is tried. */
typedef enum {
  occlBudgetFrontHeavy = 1, /* longest at the front, falling with position, rising on success;
                               default while there is a processor for every rank */
  occlBudgetFlat = 2,       /* everything equally long */
  occlBudgetNoPolling = 3   /* one look; default with more ranks than processors */
} occlBudgetPolicy_t;

/* Where a communicator's buffers are. */
typedef enum {
  occlDeviceHost = 0, /* default */
  occlDeviceCuda = 1  /* on CUDA devices, at most 8 ranks: see occlCall and occlStart */
} occlDeviceKind_t;

/* Settings of a communicator. Start from OCCL_CONFIG_INITIALIZER; 0 means the default. Executors
 * belong to a device: each rank of occlCommInitAll has its own, the communicators that a process
 * makes with occlCommInitRank share one. preemption, workers, spinMicroseconds, strict and the
 * policies are the device's: 0 means what it has, and what differs from that is
 * occlInvalidArgument. */
typedef struct {
  size_t size;        /* sizeof(occlConfig_t), for later extension */
  uint32_t timeoutMs; /* deadline of set-up, and of every collective without one of its own, whose
                         passing fails the communicator. 0: 30 seconds for set-up (making, dividing
                         and shrinking communicators), and collectives have none */
  uint32_t
      preemption; /* 1: on (default). 2: off, to show what happens without: ends in occlDeadlock */
  uint32_t workers; /* executor threads of the device, a thread inside occlWait is in the place of
                       one of them; default 1. With occlDeviceCuda thread blocks
                       that its resident daemon takes of it while something is in flight, for each
                       kind of collective (floats and sum or others, LL and LL128 or Simple): at
                       most 64; default 16 */
  uint32_t spinMicroseconds; /* spin budget at the front of the task queue, at most 20000, as nobody
                                looks at deadlines meanwhile; default: measured at start, or 5 in a
                                resident daemon */
  uint64_t
      arenaBytes; /* memory of a rank for connectors in flight; default 256 MiB, touched as used */
  uint32_t maxInFlight;  /* requests at once, of what was started, and of what is complete, was
                            started without callback and not waited for; default 1024. On devices
                            there is no such limit */
  uint32_t orderPolicy;  /* an occlOrderPolicy_t */
  uint32_t budgetPolicy; /* an occlBudgetPolicy_t */
  uint64_t heapBytes;    /* memory of a rank for occlMemAlloc, the same on all ranks; default 1 GiB,
                            touched as used */
  uint32_t deviceKind; /* an occlDeviceKind_t, the same on all ranks. occlDeviceCuda: arenaBytes and
                          heapBytes are taken of the device at once, but for asNeeded */
  uint32_t device;     /* the CUDA device of the rank, as CUDA numbers those of this process; with
                          occlCommInitAll of rank 0: rank r has the one r further, going around */
  uint32_t strict;     /* with occlDeviceCuda, 1: no thread block stays on the device for calls of
                          occlStart, until a stream of this process waits there (occlStreamWait, or a
                          call in a stream); executors come about every two milliseconds and look
                          whether something can go on, for half a millisecond, so that kernels that
                          need the whole device get it in between. 2: one stays for calls with
                          `after`; default 2 */
  uint32_t
      streams; /* with occlDeviceCuda: in how many streams of the device this process has
                  calls at a time (occlCall; graphs that run side by side count each), of all
                  communicators together; at most 1024, default 8. The fewer, the larger are the
                  kernels that may start while the work ahead of them in their stream ends, which
                  takes 0.8 to 1.5 us less. With more streams than said, collectives in conflicting
                  orders may lack room on the device, and wait for ever, or end at their timeout */
  uint32_t registeredBuffers; /* the same on all ranks, 1: all buffers of occlCall and
                                 occlStart are of occlMemAlloc, so that plans may be chosen in which
                                 ranks access each other's; default 0 */
  uint32_t maxThreadBlocks;   /* the same on all ranks; with occlDeviceCuda: of a call in a stream
                                 with a plan that the library chooses, 16 or more. Each takes a
                                 multiprocessor. Fewer leave more of the device to what is computed
                                 beside the call, which takes longer; default: as many as are fastest
                                 if nothing is, at most 128 */
  uint32_t asNeeded; /* the same on all ranks; with occlDeviceCuda, 1: device memory for larger
                        calls is taken when a rank first makes one, on all ranks, and there are
                        occlCall, sends and receives alone: occlStart and partitioned requests are
                        occlInvalidArgument. The call waits for what others take, not for their
                        calls. If some rank gets none, all get occlSystemError for such calls from
                        then on, also once there is memory again, and small ones go on; a group of
                        transfers with several ranks fails the communicator. default 0: all of it is
                        taken when the communicator is made */
} occlConfig_t;
#define OCCL_CONFIG_INITIALIZER                                                                    \
  { sizeof(occlConfig_t), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

struct CUstream_st;
typedef struct occlPlan *occlPlan_t;

/* What a call does. */
typedef enum {
  occlKindPlan = 0, /* what a plan of the caller's own does */
  occlKindAllReduce = 1,
  occlKindAllGather = 2,
  occlKindReduceScatter = 3,
  occlKindBroadcast = 4,
  occlKindReduce = 5,
  occlKindAllToAll = 6,
  occlKindGather = 7,
  occlKindScatter = 8
} occlKind_t;

/* A call. Nothing is registered before. */
typedef struct {
  size_t size;     /* sizeof(occlCall_t) */
  occlKind_t kind; /* else than occlKindPlan: OCCL chooses one of the plans that come with it, for 1
                      to 32 ranks on hosts and 1 to 8 on devices, by kind, bytes and number of
                      ranks alone */
  occlPlan_t plan; /* of kind occlKindPlan, else NULL. It may be destroyed after the call */
  const void *sendBuffer;
  void *recvBuffer;
  uint64_t count; /* elements of one part, may be 0: all-reduce, broadcast, reduce, scan: of the
                     buffer; all-gather, gather: of the input; reduce-scatter, scatter: of the
                     output; all-to-all: of what goes to one rank; with parts of different sizes:
                     of a chunk */
  occlDataType_t dataType;
  occlRedOp_t op;     /* ignored where nothing is reduced; a scan has no occlAvg */
  uint32_t root;      /* of broadcast, reduce, gather and scatter; else 0 */
  uint64_t id;        /* of occlStart: the sequence; any number below 2^63 */
  int32_t priority;   /* larger is more urgent; default 0. The highest that a rank gives the
                         collective counts on all, as soon as that rank has started it */
  uint32_t timeoutMs; /* deadline, from the call on; 0: the communicator's, OCCL_NO_TIMEOUT: none */
  const char *name;   /* for reports; may be NULL */
  uint32_t callbacksNeverBlock; /* of occlStart, 1: its callback returns at once, so whoever
                                   completes the collective runs it: a thread of the library or one
                                   inside occlWait, occlTest, occlStart, occlCall, occlCommAbort or
                                   a function of occl_transfer.h.
                                   One at a time, in the order in which collectives ended; faster by
                                   a change of thread. One that blocks all the same holds up the
                                   other callbacks of its rank */
  const void *scalar; /* pre-multiplied sum: with occlSum, an element of type dataType in host
                         memory, of any alignment, read before the call returns. Each element of
                         this rank's input is multiplied by it before it is reduced, also where a
                         plan of the caller's own copies it to an output beside. Ranks may have
                         different ones, or NULL: nothing is multiplied. Not with plans that run in
                         place only: occlInvalidArgument */
  struct CUstream_st *const *after; /* of occlStart with occlDeviceCuda: NULL, what writes the input
                                       is complete; else the stream (a cudaStream_t, not captured)
                                       after whose work so far the call begins, which its timeout
                                       counts from. Ignored on hosts and by occlCall */
  const void *deviceScalar; /* with occlDeviceCuda, instead of scalar: one in memory that the rank's
                               device can read, also pinned memory of the host; any alignment. It is
                               read in the order of the stream of occlCall, in a graph at each
                               replay, or of `after`; by occlStart without a stream before that
                               returns. Else NULL */
} occlCall_t;
#define OCCL_CALL_INITIALIZER                                                                      \
  {                                                                                                \
    sizeof(occlCall_t), occlKindPlan, NULL, NULL, NULL, 0, occlFloat32, occlSum, 0, 0, 0, 0, NULL, \
        0, NULL, NULL, NULL                                                                        \
  }

#endif /* OCCL_TYPES_H */
