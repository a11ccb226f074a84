/* What a communicator can be asked about: counters, who waits for whom, traces. */
#ifndef OCCL_INSIGHT_H
#define OCCL_INSIGHT_H

#include "occl.h"

#ifdef __cplusplus
extern "C" {
#endif

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
  occlWaitAnnounce = 0,   /* a rank that has not called the collective */
  occlWaitData = 1,       /* a message */
  occlWaitCredit = 2,     /* a receiver that has not read what it was sent */
  occlWaitDependency = 3, /* another thread block of the rank */
  occlWaitSignal = 4,
  occlWaitBegin = 5, /* a rank that has called the collective and not finished the one before: only
                        plans that access buffers directly */
  occlNumWaitReasons = 6
} occlWaitReason_t;
#define OCCL_MAX_WAIT_REASONS 8

/* Counters of a sequence of collectives on one rank, over all since it is known. Times are sums, in
 * nanoseconds, over the completed invocations. On devices startNs and announceNs count from when
 * the daemon took the submission in, or its stream had reached it. */
typedef struct {
  size_t size; /* sizeof(occlCollectiveStats_t), set by the caller */
  uint64_t submitted, completed, failed;
  uint64_t startNs;         /* from the call until the thread blocks are in the task queue */
  uint64_t announceNs;      /* from the call until all ranks that this one needs were seen to have
                               called it */
  uint64_t finishNs;        /* from the call until all thread blocks of this rank are done */
  uint64_t longestFinishNs; /* of one collective */
  uint64_t queueLengths;    /* sum of the lengths of the task queue when a collective came in */
  uint64_t longestQueue;    /* the longest of them */
  uint32_t numBlocks;       /* thread blocks of this rank, in the collective that had most */
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
  uint64_t bytesSent, bytesReceived; /* by completed collectives */
  uint64_t runningNs;
  uint64_t queueLengths;                  /* sum of the lengths of the task queue at the visits */
  uint64_t longestQueue;                  /* the longest of them */
  uint64_t waits[OCCL_MAX_WAIT_REASONS];  /* by occlWaitReason_t */
  uint64_t waitNs[OCCL_MAX_WAIT_REASONS]; /* by occlWaitReason_t */
} occlBlockStats_t;
#define OCCL_ALL_BLOCKS UINT32_MAX

OCCL_API occlResult_t occlCommGetStats(occlComm_t comm, occlStats_t *stats);
/* Of the sequence of an id; OCCL_CALLS is that of occlCall. occlInvalidArgument if nothing of it
 * was ever called, or not for so long that it was forgotten. On devices: of the
 * sequences of occlStart. */
#define OCCL_CALLS UINT64_MAX
OCCL_API occlResult_t occlCollectiveGetStats(occlComm_t comm, uint64_t id,
                                             occlCollectiveStats_t *stats);
/* Of thread block `block`, or of all with OCCL_ALL_BLOCKS. */
OCCL_API occlResult_t occlCollectiveGetBlockStats(occlComm_t comm, uint64_t id, uint32_t block,
                                                  occlBlockStats_t *stats);
/* The ids of the sequences that are known, ascending: those of occlStart, then from 2^63 on, by the
 * order in which they were made, those of partitioned collectives, and OCCL_CALLS last if there was
 * an occlCall: the first `capacity` into ids, their number into *count. */
OCCL_API occlResult_t occlCommGetCollectives(occlComm_t comm, uint64_t *ids, size_t capacity,
                                             size_t *count);

/* Into *isBusy 1 if something that this rank has called is in flight, or may be, else 0: on devices
 * also what stands in streams, and replays of graphs whose kernels have begun; while another thread
 * makes a call, and if the device does not say, it is 1. Reads from the device, which is not asked
 * while its kernels are known to wait; it answers when a copy from it would be over. */
OCCL_API occlResult_t occlCommIsBusy(occlComm_t comm, int *isBusy);

/* Who waits for whom, now: for every thread block that waits the rank, the collective, the
 * instruction, its source line, what it waits for and for how long; and who has not submitted what
 * others wait for. Text into buffer (always terminated), its full length without the terminator
 * into *length. Asks the other ranks, and gives those that do not answer up to 50 ms, those of
 * other machines up to 200 ms. */
OCCL_API occlResult_t occlCommReport(occlComm_t comm, char *buffer, size_t capacity,
                                     size_t *length);

/* The counters of this rank in the text format of Prometheus, to be served by HTTP or written into a
 * file for node_exporter: docs/insight.md has the names. labels: what all of them have beside
 * `rank` and `size`, as job="train",host="a" with the format's escapes, or NULL; what is no such
 * list is occlInvalidArgument. Text into buffer (always terminated), its full length without the
 * terminator into *length, which may be NULL; counters go on meanwhile, so a later text may be
 * longer. Waits for no other rank. */
OCCL_API occlResult_t occlCommGetMetrics(occlComm_t comm, const char *labels, char *buffer,
                                         size_t capacity, size_t *length);

/* From now on the signal makes the process write the reports of all its communicators, present and
 * future, to the file `path`, or to standard error if it is NULL: %r in path is the rank, %p the
 * process. A handler that was there before is called as well. OCCL_REPORT_SIGNAL (USR1, say) and
 * OCCL_REPORT_FILE in the environment do the same when a communicator is made. A child made by
 * fork() makes no reports until it asks, too. */
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

#ifdef __cplusplus
}
#endif

#endif /* OCCL_INSIGHT_H */
