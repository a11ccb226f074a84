/* OCCL: collectives that each rank may start in an order of its own. C interface. They do not
 * deadlock as long as ranks start what others wait for without waiting first for what those have
 * not started, and, on CUDA devices, under the conditions at occlCall and occlStart.
 *
 * A communicator joins ranks 0..n-1, which are threads of one process, or processes of one machine
 * or of several.
 * occlCall executes a collective; occlStart starts one, of an id, and ranks may start ids in any
 * order. Nothing is registered before: any count, type, operation and buffer will do. OCCL chooses
 * one of the plans that come with it, or the caller gives one of its own (made by `occlc compile`).
 *
 * Beside this header: occl_types.h, results, element types, settings and what a call is;
 * occl_collectives.h, a function for each kind of collective; occl_insight.h, counters, reports and
 * traces; occl_transfer.h, sends and receives; occl_partitioned.h, buffers that are sent while they
 * are made.
 *
 * Every function returns an occlResult_t; the text of the last error of the calling thread is
 * occlGetLastError(). Unless a function says otherwise it may be called from any thread, also from
 * callbacks.
 *
 * Collectives wait for ranks that live as long as it takes, unless they are given a deadline; so
 * does occlWait. A wait of more than 30 seconds (or of as many milliseconds as OCCL_LONG_WAIT_MS in
 * the environment has) is said on standard error, who waits for whom, and goes on. Ranks that die,
 * leave or abort end it. All other functions have bounds.
 *
 * A communicator belongs to the process that made it. In a child made by fork() every call with it
 * is occlInvalidArgument, and occlCommDestroy does nothing: neither this rank nor its peers notice.
 * Memory of occlMemAlloc that is no device's can still be read there. The child may make
 * communicators of its own, as far as one of a process with threads may call functions at all
 * before it executes a program.
 */
#ifndef OCCL_H
#define OCCL_H

#include "occl_types.h"

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

typedef struct occlComm *occlComm_t;
/* A collective that occlStart has started, or a group of transfers. 0 is never one. */
typedef uint64_t occlRequest_t;

/* Called once when a collective, or a group of transfers, ends. result is occlSuccess or why it
 * failed, which is then why the communicator failed. It may start, wait and abort, and block on
 * whatever it likes as long as that ends: it runs on a thread of the library that is there for
 * callbacks, and while it blocks others run on further threads, up to 64 of a process. Callbacks of
 * a rank are begun in the order in which what they are of ended, one after the other unless one
 * takes longer than a millisecond. See callbacksNeverBlock for those that need no thread of their
 * own.
 * It must not destroy its communicator (that returns occlInvalidArgument). What it throws ends the
 * communicator with occlCallbackFailed and goes no further. */
typedef void (*occlCallback_t)(occlRequest_t request, occlResult_t result, void *user);

/* --- Plans: loaded once, shared by any number of communicators. */

/* Reads a plan file (JSON or CBOR) and verifies it. The caller destroys *plan. occlInvalidPlan says
 * what is wrong. */
OCCL_API occlResult_t occlPlanLoad(const char *path, occlPlan_t *plan);
/* Gives up the caller's reference; calls in flight keep theirs. */
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
 * With a name HOST:PORT or HOST:PORT/SECRET ranks may be on several machines (see
 * docs/machines.md): rank 0 listens there; without a secret the environment has it, OCCL_SECRET.
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
 * calls again. Returns within two timeouts, and two more for every rank that is lost meanwhile. On
 * several machines a majority of all ranks has to live, or half of them with rank 0, excluded ones
 * too: else occlTimeout, within ten timeouts, after which all may call again. Not there on GPUs.
 * Nothing is taken over: calls with plans of one's own take plans for the new size. The old
 * communicator stays as it was, shrunk or not may be destroyed first, and a shrunk one may be
 * shrunk again. config: as for occlCommSplit. */
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
 * rank's memory on it stays taken until the process ends, and standard error says so. The call
 * spoils a capture in progress of any stream of the device: CUDA refuses to wait for it then. */
OCCL_API occlResult_t occlCommDestroy(occlComm_t comm);
/* Ends everything in flight on all ranks with occlAborted. Any thread, any state, also while
 * another thread waits, divides or destroys the communicator; always returns. What was in flight
 * may end a little later: its buffers are the caller's when its occlWait or callback says so. */
OCCL_API occlResult_t occlCommAbort(occlComm_t comm);

/* --- Collectives. */

/* On hosts, where stream is NULL: executes the call, and returns when it has ended on this rank and
 * its buffers are the caller's again. With occlDeviceCuda it is the next work of the stream (a
 * cudaStream_t; NULL: the default one), and buffers are memory of the rank's device. The calls of a
 * communicator are a sequence: the k-th of a rank belongs to the k-th of the others, whatever their
 * kinds, counts and types, so ranks make them in one order (threads of a rank order theirs between
 * them). Ranks that disagree in kind, count, type, operation, root or plan fail the communicator
 * with occlMismatch, which names two that do and what each has: at once where one of them needs the
 * other's data, or they are neighbours, and the calls of the two are less than eight apart. A rank
 * whose part was already at an end has then been told so by its next call. A call that is refused
 * (occlInvalidArgument, occlInvalidPlan) has no number. Waits for room in the arena while other
 * ranks have not finished what this one has called and started before: arenaBytes has to hold what
 * a rank starts before a call that others make first. If those ranks are gone it is occlPeerFailed.
 * Buffers overlap in place alone, as the plan's collective has it; a plan that is valid out of
 * place only then reads a copy of the input (occlRedOp_t). The first call of a new kind, count,
 * type and operation takes longer, which the last 256 are remembered for. occl_collectives.h has a
 * function for each kind.
 *
 * With occlDeviceCuda calls run one after the other, whatever their streams. Which rank calls
 * something else is seen by 16 bits of a hash, so in one of 65,536 cases it is not. Under stream
 * capture a call becomes a node of the graph, and replays take their turn when they run: from the
 * first captured call of a communicator on the program orders what graphs do beside other calls of
 * it, by streams and events; of two that run at a time one fails the communicator with
 * occlInvalidArgument, if it is noticed. The first captured call waits until the calls before it
 * have ended; what was captured is not launched after occlCommDestroy. The first call takes up to
 * 3/8 of the rank's device memory for messages, of an arenaBytes of 128 MiB or more up to 3/4, and
 * each new shape what its tables take; shapes that were not called for long make room, but for
 * those that graphs have captured, and on several machines none once a call has been captured.
 * occlAgain: there is not enough, or, after a captured call, not as long as a call is in flight.
 * Ids and priorities are nothing to such calls, and occlCommGetStats, reports and traces have
 * nothing of them.
 *
 * Such a call is put into its stream whole or not at all: an error leaves the stream as it was, and
 * has no number; but if CUDA refuses what orders the next call behind this one the communicator
 * fails. When its timeout passes, when a rank is gone, and after occlCommAbort its kernel leaves,
 * the output is undefined, and every later call returns why (occlCommGetLastError). So it is after
 * an error of CUDA that ends all work of a process on its device, whosever kernel made it:
 * occlSystemError names the rank and the error. No lock is held in CUDA's calls but the
 * communicator's own for calls.
 *
 * Calls of several communicators in conflicting orders, in several streams, complete as long as
 * - fewer streams of the process than CUDA_DEVICE_MAX_CONNECTIONS (8, at most 32) wait on the
 *   device, counting those that wait for an event behind such a stream. A call that other ranks
 *   have not made yet, in a stream in which nothing of the communicator waits, is refused with
 *   occlAgain while all others but one are known to wait (it takes a kernel some 10 ms to say so):
 *   call again when one has ended. With 1, as some programs set it, all ranks keep one order, and
 *   nothing is refused;
 * - none of the streams is the legacy default stream or waits for it (streams of cudaStreamCreate
 *   do): CUDA runs those one after the other. Nor does CUDA do so with branches of a graph;
 * - the device has a multiprocessor for each stream that waits, beside what else runs there, and no
 *   more streams are in use than occlConfig_t::streams says; all communicators, and with MPS all
 *   processes, count together. A kernel that needs every multiprocessor gets them when nothing
 *   waits;
 * - threads that make calls are not held up by what waits: cudaFree, cudaMalloc and
 *   cudaDeviceSynchronize may wait for it, as may the first launch of any kernel of the program
 *   (CUDA loads it then: set CUDA_MODULE_LOADING=EAGER), and a communicator's first call of a kind,
 *   count and type, which clears and copies memory; CUDA_LAUNCH_BLOCKING, profilers and
 *   compute-sanitizer have every launch wait;
 * - no thread waits for a call of one communicator before it makes one of another that a rank waits
 *   for first: in conflicting orders that is a cycle of the program's own;
 * - processes that share a device have MPS, or time: without it the device serves one of them after
 *   the other, so a call takes milliseconds for each change, and is right.
 * Otherwise calls wait for ever or end at their timeout. What waits for long is said on standard
 * error, with the number of streams that wait if that has reached the limit. */
OCCL_API occlResult_t occlCall(occlComm_t comm, const occlCall_t *call, struct CUstream_st *stream);
/* Starts the call and returns. The calls of an id are a sequence: the k-th that a rank starts
 * belongs to the k-th of the others, and they are executed one after the other. Ids may be started
 * in any order, other ones on each rank; mismatches as for occlCall. Buffers stay the caller's and
 * untouched by it until completion. callback and request may be NULL, not both. Ids may come and go
 * for ever: one that is not in flight is forgotten once each rank has called enough others since,
 * 8192 divided by the number of ranks, and 64 at least; it begins anew when it comes again.
 * occlAgain: too much is in flight, here or because a peer has not finished earlier calls, and
 * nothing was done; occlGetLastError() names the holders. Call again after a completion, or after
 * occlTest of any request that is in flight, or a little later. Where what is missing is held by
 * ranks that are gone it is occlPeerFailed, and the communicator has failed. A small collective
 * with a callback is begun at once, by the caller, who waits for data of its peers for some
 * microseconds at most.
 *
 * With occlDeviceCuda the resident daemon of the rank's device executes it, a kernel that leaves
 * when there is nothing to do, once all ranks have started it: buffers are memory of that device.
 * Its thread blocks need multiprocessors: while other kernels have all of them nothing moves; nor
 * does the first of a kind (floats and sum or others; LL and LL128 or Simple) of a process while
 * anything runs on the device that was there before it. Calls of up to 4096 ids at a time, started
 * and waited for in any order, end; 1024 different ones (count, plan, set of connections) of a kind
 * have tables at a time, further ones wait for theirs. A call with call->after takes a set of
 * connections for its id until it is complete on all ranks, of as many as the communicator's memory
 * is for, 64 of a kind at most (docs/gpu.md: all with the defaults on 4 GPUs); while such calls
 * have all, other ids wait, and those with `after` are occlAgain. So they are behind an earlier
 * call of their id that waits, or 64 ahead of another rank, and while what all ranks have started
 * cannot be executed yet. While 256 later calls of the process on the device have been started, all
 * wait for those whose stream has not come so far. Start no more than that between a call with
 * `after` and what lets another rank start the same one, nor have more in flight of several
 * communicators: ranks then may wait for each other for ever. Plans compiled with --direct need
 * buffers of occlMemAlloc. */
OCCL_API occlResult_t occlStart(occlComm_t comm, const occlCall_t *call, occlCallback_t callback,
                                void *user, occlRequest_t *request);
/* What follows in a stream of the rank's device (a cudaStream_t, not captured) waits until the
 * request has ended, also if it ends badly: then its output is undefined, and occlWait and the
 * callback say so. For requests of calls with `after`, else occlInvalidArgument; any number of
 * streams may wait, and the host as well. No kernel waits for it: one thread block of the daemon
 * stays on the device. At any time fewer streams of the process may wait so on a device than
 * CUDA_DEVICE_MAX_CONNECTIONS (8, at most 32) for calls that other ranks have not come to. cudaFree
 * and cudaDeviceSynchronize wait for such streams. */
OCCL_API occlResult_t occlStreamWait(occlComm_t comm, occlRequest_t request,
                                     struct CUstream_st *stream);
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
/* occlInProgress, or the result as occlWait. Never blocks; executes what can go on now. */
OCCL_API occlResult_t occlTest(occlComm_t comm, occlRequest_t request);

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

/* --- Versions and errors. Counters, reports and traces are in occl_insight.h. */

/* The version of the library that is loaded, where this header's is OCCL_VERSION_MAJOR and
 * OCCL_VERSION_MINOR. Until 1.0 a program needs the library of the version that it was compiled
 * with. occlInvalidArgument, with nothing written, if a pointer is NULL. */
OCCL_API occlResult_t occlGetVersion(uint32_t *major, uint32_t *minor);
OCCL_API const char *occlGetErrorString(occlResult_t result);
/* Of the last call of this thread that did not return occlSuccess; valid until the thread's next
 * such call. */
OCCL_API const char *occlGetLastError(void);
/* Why the communicator failed, if it did: names collective, rank, instruction and source line. ""
 * if it did not. As soon as a stream has ended whose calls a failure left undone, it is known. */
OCCL_API const char *occlCommGetLastError(occlComm_t comm);

#ifdef __cplusplus
}
#endif

#endif /* OCCL_H */
