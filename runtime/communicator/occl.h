/* OCCL: collectives that cannot deadlock, in whatever order each rank submits them. C interface.
 *
 * A communicator joins ranks 0..n-1, which are threads of one process or processes of one machine.
 * A collective is a verified plan (made by `occlc compile`) with an element type, a count and an
 * operation; it is registered under an id that all ranks use alike, then submitted any number of
 * times. Ranks may register and submit in any order.
 *
 * Every function returns an occlResult_t; the text of the last error of the calling thread is
 * occlGetLastError(). Unless a function says otherwise it may be called from any thread, also from
 * callbacks.
 *
 * Collectives wait for ranks that live as long as it takes, unless they are given a deadline; so do
 * occlWait, occlRun and occlEnqueueAndWait. A wait of more than 30 seconds (or of as many
 * milliseconds as OCCL_LONG_WAIT_MS in the environment has) is said on standard error, who waits
 * for whom, and goes on. Ranks that die, leave or abort end it. All other functions have bounds.
 *
 * A communicator belongs to the process that made it. In a child made by fork() every call with it
 * is occlInvalidArgument, and occlCommDestroy does nothing: neither this rank nor its peers notice.
 * Memory of occlMemAlloc that is no device's can still be read there. The child may make
 * communicators of its own, as far as one of a process with threads may call functions at all
 * before it executes a program.
 */
#ifndef OCCL_H
#define OCCL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define OCCL_API __attribute__((visibility("default")))
#else
#define OCCL_API
#endif

#define OCCL_VERSION_MAJOR 0
#define OCCL_VERSION_MINOR 1

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
  occlPeerFailed = 8,      /* the process of a rank is gone */
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
  occlFloat8E5m2 = 8  /* up to 57344 */
} occlDataType_t;

typedef enum { occlSum = 0, occlProd = 1, occlMin = 2, occlMax = 3, occlAvg = 4 } occlRedOp_t;

typedef struct occlComm *occlComm_t;
typedef struct occlPlan *occlPlan_t;
/* A submitted invocation. 0 is never one. */
typedef uint64_t occlRequest_t;

/* In which order a rank turns to what is in flight: the same on all ranks of a communicator. */
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
  occlDeviceCuda = 1  /* on CUDA devices, at most 8 ranks: see occlSubmit and occlEnqueue */
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
  uint32_t
      spinMicroseconds; /* spin budget at the front of the task queue; default: measured at start */
  uint64_t
      arenaBytes; /* memory of a rank for connectors in flight; default 256 MiB, touched as used */
  uint32_t maxInFlight;  /* invocations admitted at once; default 1024. With occlDeviceCuda it is
                            256 of each kind, of all communicators that share the daemon */
  uint32_t orderPolicy;  /* an occlOrderPolicy_t */
  uint32_t budgetPolicy; /* an occlBudgetPolicy_t */
  uint64_t heapBytes;    /* memory of a rank for occlMemAlloc, the same on all ranks; default 1 GiB,
                            touched as used */
  uint32_t deviceKind; /* an occlDeviceKind_t, the same on all ranks. occlDeviceCuda: arenaBytes and
                          heapBytes are taken of the device at once */
  uint32_t device;     /* the CUDA device of the rank, as CUDA numbers those of this process; with
                          occlCommInitAll of rank 0: rank r has the one r further, going around */
  uint32_t strict;  /* with occlDeviceCuda, 1: while streams wait for what was submitted to them no
                       thread block stays on the device, see occlSubmitOnStream; 2: one stays;
                       default 2 */
  uint32_t streams; /* with occlDeviceCuda: in how many streams of the device this process has
                       collectives enqueued at a time (occlEnqueue; graphs that run side by side
                       count each), of all communicators together; at most 1024, default 8. The
                       fewer, the larger are the kernels that may start while the work ahead of
                       them in their stream ends, which takes 0.8 to 1.5 us less. With more streams
                       than said, collectives in conflicting orders may lack room on the device,
                       and wait for ever, or end at their timeout */
  uint32_t registeredBuffers; /* the same on all ranks, 1: all buffers of occlCall are of
                                 occlMemAlloc, so that plans may be chosen in which ranks access
                                 each other's; default 0 */
} occlConfig_t;
#define OCCL_CONFIG_INITIALIZER                                                                    \
  { sizeof(occlConfig_t), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* Called once when an invocation ends. result is occlSuccess or why the invocation failed, which is
 * then why the communicator failed. It may submit, wait and abort, and block on whatever it likes
 * as long as that ends: it runs on a thread of the library that is there for callbacks, and while
 * it blocks others run on further threads, up to 64 of a process. Callbacks of a rank are begun in
 * the order in which its invocations ended, one after the other unless one takes longer than a
 * millisecond. See callbacksNeverBlock for those that need no thread of their own.
 * It must not destroy its communicator (that returns occlInvalidArgument). What it throws ends the
 * communicator with occlCallbackFailed and goes no further. */
typedef void (*occlCallback_t)(occlRequest_t request, occlResult_t result, void *user);

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

/* Counters of a communicator's rank since its start. */
typedef struct {
  size_t size; /* sizeof(occlStats_t), set by the caller */
  uint64_t submitted, completed, failed;
  uint64_t preemptions; /* a block was left because its wait outlasted its budget */
  uint64_t contextLoads, contextSaves;
  uint64_t quits, restarts; /* of the executors, whatever communicator they execute: voluntary quits
                               with nothing to do or nothing that moves */
  uint64_t bytesSent, bytesReceived;
  uint64_t maxQueueLength; /* of the task queue */
  double meanQueueLength;  /* over the times that a task was picked */
} occlStats_t;

/* What a thread block of a collective waits for. */
typedef enum {
  occlWaitAnnounce = 0,   /* a rank that has not submitted the invocation */
  occlWaitData = 1,       /* a message */
  occlWaitCredit = 2,     /* a receiver that has not read what it was sent */
  occlWaitDependency = 3, /* another thread block of the rank */
  occlWaitSignal = 4,
  occlWaitBegin = 5, /* a rank that has submitted the invocation and not finished the one before:
                        only plans that access buffers directly */
  occlNumWaitReasons = 6
} occlWaitReason_t;
#define OCCL_MAX_WAIT_REASONS 8

/* Counters of a registered collective on one rank, over all invocations since it was registered.
 * Times are sums, in nanoseconds, over the completed invocations. On devices startNs and announceNs
 * count from when the daemon took the submission in, or its stream had reached it. */
typedef struct {
  size_t size; /* sizeof(occlCollectiveStats_t), set by the caller */
  uint64_t submitted, completed, failed;
  uint64_t startNs;         /* from submission until the thread blocks are in the task queue */
  uint64_t announceNs;      /* from submission until all ranks that this one needs were seen to have
                               submitted it */
  uint64_t finishNs;        /* from submission until all thread blocks of this rank are done */
  uint64_t longestFinishNs; /* of one invocation */
  uint64_t queueLengths;    /* sum of the lengths of the task queue when an invocation came in */
  uint64_t longestQueue;    /* the longest of them */
  uint32_t numBlocks;       /* thread blocks of this rank */
} occlCollectiveStats_t;

/* The same of one thread block, or of all together. A wait counts when it is over; it lasts from
 * the first look that found something missing to the one that found it there, whatever else was
 * executed in between. */
typedef struct {
  size_t size;           /* sizeof(occlBlockStats_t), set by the caller */
  uint64_t contextLoads; /* visits by an executor */
  uint64_t contextSaves; /* visits that moved it */
  uint64_t preemptions;  /* visits that ended with it waiting, while others were open */
  uint64_t slices;
  uint64_t bytesSent, bytesReceived; /* by completed invocations */
  uint64_t runningNs;
  uint64_t queueLengths;                  /* sum of the lengths of the task queue at the visits */
  uint64_t longestQueue;                  /* the longest of them */
  uint64_t waits[OCCL_MAX_WAIT_REASONS];  /* by occlWaitReason_t */
  uint64_t waitNs[OCCL_MAX_WAIT_REASONS]; /* by occlWaitReason_t */
} occlBlockStats_t;
#define OCCL_ALL_BLOCKS UINT32_MAX

/* --- Plans: loaded once, shared by any number of communicators. */

/* Reads a plan file (JSON or CBOR) and verifies it. The caller destroys *plan. occlInvalidPlan says
 * what is wrong. */
OCCL_API occlResult_t occlPlanLoad(const char *path, occlPlan_t *plan);
/* Gives up the caller's reference; registered collectives keep theirs. */
OCCL_API occlResult_t occlPlanDestroy(occlPlan_t plan);
/* Ranks that the plan is for, and the name of its collective (valid as long as the plan). NULLs are
 * skipped. */
OCCL_API occlResult_t occlPlanQuery(occlPlan_t plan, uint32_t *numRanks, const char **collective,
                                    const char **name);

/* --- Communicators. */

/* numRanks ranks in this process; comms[r] is rank r. For threads, tests and CPU tensors. config
 * may be NULL. */
OCCL_API occlResult_t occlCommInitAll(occlComm_t *comms, uint32_t numRanks,
                                      const occlConfig_t *config);
/* One rank of a communicator of processes of this machine, which run as the same user and in the
 * same PID namespace. All use the same name: 1 to 64 of [A-Za-z0-9_-], unique among those of the
 * user until this has returned on all ranks; other users' names are others. If the environment says
 * which job a rank is of (OCCL_JOB, or what torchrun, mpirun and srun set), ranks of two jobs are
 * not put together: occlMismatch, as for a rank that is there already. If it does not, ranks of two
 * jobs that use one name at one time can come together: give each job a name of its own. Returns
 * when all ranks are there, or occlTimeout naming the missing ones. occlMismatch also says whose a
 * file is that another user has put in the place where ranks meet.
 * A rank is gone, and its peers get occlPeerFailed, when its process has ended or executes another
 * program: not when only its main thread has ended. The process must not close descriptors that it
 * has not opened. */
OCCL_API occlResult_t occlCommInitRank(occlComm_t *comm, uint32_t numRanks, uint32_t rank,
                                       const char *name, const occlConfig_t *config);
/* The same with rank, size and name from the environment: OCCL_RANK, OCCL_SIZE, OCCL_JOB (set by
 * occl-run), or those of torchrun (RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT) or of Open MPI's
 * mpirun and Slurm's srun. */
OCCL_API occlResult_t occlCommInitFromEnv(occlComm_t *comm, const occlConfig_t *config);
/* Divides a communicator: all its ranks call it, and those that give the same colour come together
 * in a new communicator, ordered by key, then by their rank in the old one. A rank that gives a
 * negative colour is in none: *newComm is NULL. The new communicator lives on the same device and
 * is otherwise on its own: it has ids, requests and failures of its own, may overlap with others,
 * may be divided again, and either may be destroyed first. config may be NULL: then as the old one;
 * it is the same on all ranks of a colour. Returns when all ranks are there, or within the timeout:
 * occlTimeout naming the missing ones. Not from a callback. Divide a communicator by one thread at
 * a time; the ranks' first calls belong together, then their second ones, also after errors. */
#define OCCL_NO_COLOUR (-1)
OCCL_API occlResult_t occlCommSplit(occlComm_t comm, int32_t colour, int32_t key,
                                    const occlConfig_t *config, occlComm_t *newComm);
/* Makes a smaller communicator of the ranks that are left, after a failure or without one. All of
 * them call it; ranks in `exclude` (of any caller; NULL with 0: nobody), ranks that are gone, and
 * ranks that have not called within the timeout, are left out. All that are in get the same
 * members, in their old order; a rank that was left out gets occlPeerFailed, now and whenever it
 * calls again. Returns within two timeouts, and two more for every rank that is lost meanwhile.
 * Nothing is taken over: register with plans for the new size. The old communicator stays as it
 * was, shrunk or not may be destroyed first, and a shrunk one may be shrunk again. config: as for
 * occlCommSplit. */
OCCL_API occlResult_t occlCommShrink(occlComm_t comm, const uint32_t *exclude, uint32_t numExclude,
                                     const occlConfig_t *config, occlComm_t *newComm);
OCCL_API occlResult_t occlCommRank(occlComm_t comm, uint32_t *rank);
OCCL_API occlResult_t occlCommSize(occlComm_t comm, uint32_t *numRanks);
/* Waits for what is in flight, no longer than the deadlines of that, nor than 30 seconds or the
 * communicator's timeout, whichever is more: what has not ended then is aborted (but see occlWait
 * for stopped processes). Then frees everything: requests, collectives, the handle. Peers that
 * still wait for this rank get occlPeerFailed. Not from a callback, nor while another thread is
 * inside a call with this communicator but occlCommAbort. NULL is nothing to do, nor is there in a
 * forked child. With occlDeviceCuda replays of graphs are in flight once their kernels have begun:
 * launch none any more, and let those that queue behind other work begin before. CUDA frees no
 * memory while the device has anything to do, also of the user's: if it has two seconds later, the
 * rank's memory on it stays taken until the process ends, and standard error says so. */
OCCL_API occlResult_t occlCommDestroy(occlComm_t comm);
/* Ends everything in flight on all ranks with occlAborted. Any thread, any state, also while
 * another thread waits, divides or destroys the communicator; always returns. What was in flight
 * may end a little later: its buffers are the caller's when its occlWait or callback says so. */
OCCL_API occlResult_t occlCommAbort(occlComm_t comm);

/* --- Collectives. */

struct CUstream_st;

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
                      to 8 ranks, by kind, bytes and number of ranks alone */
  occlPlan_t plan; /* of kind occlKindPlan, else NULL. It may be destroyed after the call */
  const void *sendBuffer;
  void *recvBuffer;
  uint64_t count; /* elements of one part, as in occlCollective_t; may be 0 */
  occlDataType_t dataType;
  occlRedOp_t op;     /* ignored where nothing is reduced */
  uint32_t root;      /* of broadcast, reduce, gather and scatter; else 0 */
  uint64_t id;        /* of occlStart: the sequence; any number but UINT64_MAX */
  int32_t priority;   /* as in occlCollective_t */
  uint32_t timeoutMs; /* as in occlCollective_t */
  const char *name;   /* for reports; may be NULL */
} occlCall_t;
#define OCCL_CALL_INITIALIZER                                                                      \
  { sizeof(occlCall_t), occlKindPlan, NULL, NULL, NULL, 0, occlFloat32, occlSum, 0, 0, 0, 0, NULL }

/* On hosts, where stream is NULL: executes the call, and returns when it has ended on this rank and
 * its buffers are the caller's again. With occlDeviceCuda it is the next work of the stream (a
 * cudaStream_t; NULL: the default one), and buffers are memory of the rank's device. The calls of a
 * communicator are a sequence: the k-th of a rank belongs to the k-th of the others, whatever their
 * kinds, counts and types, so ranks make them in one order (threads of a rank order theirs between
 * them). Ranks that disagree in kind, count, type, operation, root or plan fail the communicator
 * with occlMismatch, which names two that do and what each has: at once where one of them needs the
 * other's data, or they are neighbours, and the calls of the two are less than eight apart. A rank
 * whose part was already at an end has then been told so by its next call. A call that is refused
 * (occlInvalidArgument, occlInvalidPlan) has no number. Waits for room if other ranks have not
 * finished earlier calls. In place, and overlap: as plans' alias modes say. The first call of a new
 * kind, count, type and operation takes longer, which the last 256 are remembered for.
 * occl_collectives.h has a function for each kind.
 *
 * With occlDeviceCuda calls run one after the other, whatever their streams. Which rank calls
 * something else is seen by 16 bits of a hash, so in one of 65,536 cases it is not. Under stream
 * capture a call becomes a node of the graph, and replays take their turn when they run: from the
 * first captured call of a communicator on the program orders what graphs do beside other calls of
 * it, by streams and events; of two that run at a time one fails the communicator with
 * occlInvalidArgument, if it is noticed. The first captured call waits until the calls before it
 * have ended; what was captured is not launched after occlCommDestroy. The first call takes up to
 * a quarter of the rank's device memory for messages, and each new shape what its tables take;
 * shapes that were not called for long make room, but none once a call has been captured.
 * occlAgain: there is not enough. Ids and priorities are nothing to such calls. */
OCCL_API occlResult_t occlCall(occlComm_t comm, const occlCall_t *call, struct CUstream_st *stream);
/* Starts the call and returns: occlWait, occlTest and callbacks as for occlSubmit, occlAgain too.
 * The calls of an id are a sequence; ids may be started in any order, other ones on each rank.
 * Calls of a registered id belong to the same sequence as its invocations. */
OCCL_API occlResult_t occlStart(occlComm_t comm, const occlCall_t *call, occlCallback_t callback,
                                void *user, occlRequest_t *request);

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
/* Executes what is in flight on this rank's device, of all its communicators, until the request is
 * complete; returns its result. A request that was submitted without callback is forgotten once
 * waited or tested to completion; waiting again for what is forgotten returns occlSuccess, or why
 * the communicator failed.
 * On hosts the buffers are the caller's again with any result: nobody stores to them any more, and
 * whoever still reads them does not take what is stored now for data of the invocation. So with an
 * error it returns when this rank's thread blocks, and with plans compiled with --direct also those
 * of ranks that store to its buffers (between threads: that access them), are at the end of what
 * they are at, which is soon. Only a process that is stopped in the middle of such a store
 * (SIGSTOP, a debugger) holds it up, beyond the deadline, until it goes on or ends. */
OCCL_API occlResult_t occlWait(occlComm_t comm, occlRequest_t request);
/* occlSubmit without callback and occlWait in one, for programs that would wait at once: starts an
 * invocation and executes what is in flight on this rank's device until it is complete. Takes less
 * time than the two calls, and no request, so a call cannot run out of them. Results: those of
 * both; after occlAgain nothing was done. */
OCCL_API occlResult_t occlRun(occlComm_t comm, uint64_t id, const void *sendBuffer,
                              void *recvBuffer);
/* occlInProgress, or the result as occlWait. Never blocks; executes what can go on now. */
OCCL_API occlResult_t occlTest(occlComm_t comm, occlRequest_t request);

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

/* --- Memory. */

/* Memory that all ranks of the communicator can access, aligned to 128 bytes: collectives between
 * buffers of it copy nothing that they do not have to. Any buffer will do for any collective, but
 * for those of plans compiled with --direct: between processes they need buffers of it. It must not
 * be freed while a collective uses it, and ends with the communicator. With occlDeviceCuda it is
 * memory of the rank's device. occlAgain: the heap (occlConfig_t::heapBytes) has no such range
 * free. */
OCCL_API occlResult_t occlMemAlloc(occlComm_t comm, size_t bytes, void **memory);
/* NULL is nothing to do. */
OCCL_API occlResult_t occlMemFree(occlComm_t comm, void *memory);

/* --- Insight. */

OCCL_API occlResult_t occlCommGetStats(occlComm_t comm, occlStats_t *stats);
/* occlInvalidArgument if no collective with this id is registered. */
OCCL_API occlResult_t occlCollectiveGetStats(occlComm_t comm, uint64_t id,
                                             occlCollectiveStats_t *stats);
/* Of thread block `block`, or of all with OCCL_ALL_BLOCKS. */
OCCL_API occlResult_t occlCollectiveGetBlockStats(occlComm_t comm, uint64_t id, uint32_t block,
                                                  occlBlockStats_t *stats);
/* The ids of all registered collectives, ascending: the first `capacity` into ids, their number
 * into *count. */
OCCL_API occlResult_t occlCommGetCollectives(occlComm_t comm, uint64_t *ids, size_t capacity,
                                             size_t *count);

/* Who waits for whom, now: for every thread block that waits the rank, the collective, the
 * instruction, its source line, what it waits for and for how long; and who has not submitted what
 * others wait for. Text into buffer (always terminated), its full length without the terminator
 * into *length. Asks the other ranks, and gives those that do not answer up to 50 ms. */
OCCL_API occlResult_t occlCommReport(occlComm_t comm, char *buffer, size_t capacity,
                                     size_t *length);

/* From now on the signal makes the process write the reports of all its communicators, present and
 * future, to the file `path`, or to standard error if it is NULL: %r in path is the rank, %p the
 * process. A handler that was there before is called as well. OCCL_REPORT_SIGNAL (USR1, say) and
 * OCCL_REPORT_FILE in the environment do the same when a communicator is made. */
OCCL_API occlResult_t occlReportOnSignal(int signal, const char *path);

/* Records what this rank does, from now on: slices, waits, visits, preemptions, requests,
 * callbacks. What is kept is bounded; older events give way to later ones, and the trace says how
 * many. occlInvalidArgument if it records already. With OCCL_TRACE=<path> in the environment every
 * communicator that is not made of another does so from its start to its end. */
OCCL_API occlResult_t occlTraceStart(occlComm_t comm, const char *path);
/* Writes what was recorded to the path (%r and %p as above), in the format of ui.perfetto.dev and
 * chrome://tracing; so does the communicator's end. occlInvalidArgument if nothing was started,
 * occlSystemError. */
OCCL_API occlResult_t occlTraceStop(occlComm_t comm);

OCCL_API const char *occlGetErrorString(occlResult_t result);
/* Of the last call of this thread that did not return occlSuccess; valid until the thread's next
 * such call. */
OCCL_API const char *occlGetLastError(void);
/* Why the communicator failed, if it did: names collective, rank, instruction and source line. ""
 * if it did not. */
OCCL_API const char *occlCommGetLastError(occlComm_t comm);

#ifdef __cplusplus
}
#endif

#endif /* OCCL_H */
