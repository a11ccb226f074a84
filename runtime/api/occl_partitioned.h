/* Partitioned communication (as MPI-4's, and collectives): a buffer is sent while it is being made.
 * The program marks its partitions ready, and asks which of the received ones have arrived.
 * Requests are persistent: made once, started for each epoch. What follows is of sends and
 * receives; what differs for collectives is said at occlPcollInit.
 *
 * Shapes. A buffer is `partitions` partitions of `count` elements each, one behind the other. The
 * two sides may divide it differently (33 and 17), as long as it has as many elements of one type;
 * 0 partitions fit to 0 only, a count may be 0. A partition of the receiver has arrived as soon as
 * all messages of the sender that overlap it have; messages end at partitions of the sender.
 *
 * Matching. The k-th send that a rank makes to another one with a tag belongs to the k-th receive
 * that that one makes from it with the tag, whatever else there is; nothing else matches. There are
 * no wildcards; a rank may send to itself. Requests that do not fit fail the communicator with
 * occlMismatch, which names both sides, before any data have moved.
 *
 * Progress. Data move when partitions are ready and both sides have started, whatever other
 * requests, transfers or calls wait for: a receiver's executors, or its threads in occlPtest,
 * occlPwait, occlParrived or any wait, read the sender's buffer. So a sender's epoch ends when the
 * receiver has read all of it, and programs whose marks and arrivals do not depend on each other in
 * a cycle end. A loop of occlParrived alone ends, too.
 *
 * Threads. occlPready... and occlParrived may be called by any threads at a time, also beside
 * occlPwait. occlPstart, occlPprepare, occlPtest, occlPwait and occlPfree of a request are for one
 * thread at a time. As soon as occlPtest or occlPwait has returned occlSuccess the request may be
 * started again, or freed, though threads that have marked its partitions are still returning from
 * occlPready...; of a request that is freed after an error, and of a communicator that is
 * destroyed, no call is under way, nor is any occlParrived.
 *
 * Ownership. Between start and end of an epoch a sender stores to a partition only before it marks
 * it, and a receiver accesses a partition only after it has arrived. The buffer lives as long as
 * the request. Requests are freed before their communicator: its end takes those that are left.
 *
 * Errors. Misuse is occlInvalidArgument, names the request and partition, and changes nothing but
 * where that is said. After a failure, abort, the end of a peer or a deadline (the communicator's,
 * from occlPstart on) calls return why, which names rank, request, epoch and what is missing; an
 * epoch that has not ended is never started again, and marks do nothing.
 *
 * Sends and receives are between hosts of one machine, with preemption;
 * occl_partitioned_device.h says what is so on devices; others are occlInvalidArgument. Where the
 * system does not let processes read each other's memory a send's buffer is of occlMemAlloc.
 */
#ifndef OCCL_PARTITIONED_H
#define OCCL_PARTITIONED_H

#include "occl.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Of a request; together at most 2^58 elements. */
#define OCCL_MAX_PARTITIONS 1048576

/* Of a collective. */
#define OCCL_MAX_ROUNDS 256

/* A persistent send, receive or collective. */
typedef struct occlPart *occlPart_t;

/* How to send; NULL stands for OCCL_PART_CONFIG_INITIALIZER. */
typedef struct {
  size_t size; /* of this struct, as the caller knows it */
  /* Partitions of a message, at most `partitions`; 0: one. With more, marks cost less and
   * partitions arrive later: those of a message must not depend on each other's arrival. */
  uint64_t partitionsPerMessage;
  /* Of collectives, the same on all ranks: in how many rounds; 0: chosen by size. Else 0. */
  uint64_t rounds;
} occlPartConfig_t;
#define OCCL_PART_CONFIG_INITIALIZER                                                               \
  { sizeof(occlPartConfig_t), 0, 0 }

/* Makes a request; local, never waits. count is of a partition. occlAgain: there is no room for the
 * words of so many messages (16 MiB a rank); free other requests, on both sides. Of a receive's
 * config nothing counts but its size, and partitionsPerMessage is 0. */
OCCL_API occlResult_t occlPsendInit(occlComm_t comm, const void *buffer, int64_t partitions,
                                    uint64_t count, occlDataType_t dataType, int64_t destination,
                                    int64_t tag, const occlPartConfig_t *config, occlPart_t *part);
OCCL_API occlResult_t occlPrecvInit(occlComm_t comm, void *buffer, int64_t partitions,
                                    uint64_t count, occlDataType_t dataType, int64_t source,
                                    int64_t tag, const occlPartConfig_t *config, occlPart_t *part);

/* Makes the request of a collective: what `call` says, as occlCall has it, also its name, priority,
 * timeout (from occlPstart on) and scalar (read before this returns); its id is 0. Local, never
 * waits; a new shape takes as long as choosing and binding a plan. call and plan may be destroyed
 * afterwards. occl_partitioned_collectives.h has a function for each kind.
 *
 * Shapes. The whole input of this rank, all parts one behind the other, is in sendPartitions
 * partitions of ceil(elements / sendPartitions) elements, of which the last ones may have fewer, or
 * none; likewise the output in recvPartitions. Ranks may divide theirs differently. A rank that has
 * no input in this collective (of a broadcast or scatter all but the root), or no output (of a
 * reduce or gather), may give any number there, and marks, or asks, nothing.
 *
 * Matching. The k-th collective request that a rank makes of a communicator belongs to the k-th of
 * the others; one that was refused has no number. Threads of a rank that make requests order them:
 * two of the same shape made in another order are exchanged. arenaBytes is the same on all ranks.
 * Requests are started in any order, other ones on each rank: an epoch is executed as a call of
 * occlStart. Ranks that disagree, in rounds too, fail the communicator with occlMismatch, which
 * names two of them and what each has, when both have started: as for occlCall, if the plan has
 * them exchange data or they are neighbours.
 *
 * Progress. A step of the collective is executed when the partitions that overlap what it reads of
 * the input are marked, and what it needs of other ranks is there. Each part of the buffers is cut
 * into rounds, pieces one behind the other, that wait for nothing of each other: 256 KiB or more,
 * at most 16, or as config says. So a round ends once all ranks have marked the partitions that
 * overlap its pieces, whatever becomes of the others, and a program ends whose marks and arrivals
 * do not depend on each other in a cycle of rounds. A plan that cannot be cut (an instruction has
 * chunks of several parts) has one round; occlPquery tells. The result's bits are the same on all
 * ranks, and do not depend on partitions, their order or threads; occlCall may give others.
 *
 * Room. An epoch takes room in the arena, more with more rounds. Each request that is made and not
 * freed has a place of its own there, as large as on the rank where it takes most: so it does not
 * matter in which orders ranks start them. occlAgain: there is none beside the others', though
 * there would be alone (else it is occlInvalidArgument). Free others, take fewer rounds or set
 * arenaBytes higher. Ranks that make and free requests in one order are told the same; of a request
 * that one rank has freed before this call and another has not, they may be told different things.
 * Calls are in such a place only if they find none beside. An epoch begins once they, and the last
 * one of the request, have ended, on all ranks, and without a call of the program. Its deadline
 * goes on meanwhile. Of calls that another rank makes only after it has waited for the epoch
 * arenaBytes has to hold what they take, too.
 *
 * Ownership. The program stores to a partition of the input before it marks it, and not again
 * before the epoch has ended. It reads a partition of the output after it has arrived; both buffers
 * are its own again when the epoch has ended on this rank: when all its partitions are marked, and
 * all output has arrived. In place as occlCall; a partition of the output that has arrived is then
 * read alone until the end, too.
 *
 * occlPstart: occlAgain: all of config->maxInFlight are taken, each of which is one of what was
 * started, or is complete and was not waited for; nothing has been done. occlPprepare:
 * occlInvalidArgument. With preemption, and not with plans compiled with --direct: others are
 * occlInvalidArgument. Ranks on hosts may be of several machines; a communicator of such makes at
 * most 8,192 requests, freed ones counted (then occlInvalidArgument), beside as many ids of
 * occlStart. On devices occl_partitioned_device.h says what differs. */
OCCL_API occlResult_t occlPcollInit(occlComm_t comm, const occlCall_t *call, int64_t sendPartitions,
                                    int64_t recvPartitions, const occlPartConfig_t *config,
                                    occlPart_t *part);

/* What occlPquery says of a request; OCCL_PART_INFO_INITIALIZER before. */
typedef struct {
  size_t size;       /* of this struct, as the caller knows it */
  uint64_t rounds;   /* of a collective, the same on all ranks; else 0 */
  uint64_t messages; /* that a send's partitions are sent in, as its receive's arrive; of a receive
                        0 until it has found its send (occlPprepare has returned), and on devices;
                        of a collective 0 */
  /* 1: there are several rounds or messages, so each arrives whatever becomes of the others. 0: it
   * is not promised that anything arrives before all partitions are marked, on all ranks that mark:
   * a program must not mark one only after another has arrived. */
  int32_t arrivesEarly;
} occlPartInfo_t;
#define OCCL_PART_INFO_INITIALIZER                                                                 \
  { sizeof(occlPartInfo_t), 0, 0, 0 }

/* How a request, of hosts or devices, divides its data: a collective may have fewer rounds than its
 * size suggests, or one, where the plan cannot be cut. Local, never waits; any thread, until the
 * request is freed. occlInvalidArgument: info->size is not set. */
OCCL_API occlResult_t occlPquery(occlPart_t part, occlPartInfo_t *info);

/* Begins the next epoch; never waits. No data move before marks. occlInvalidArgument: the last one
 * has not been waited for, or tested to its end. */
OCCL_API occlResult_t occlPstart(occlPart_t part);
/* Returns when the other side has started this epoch, too. Not needed for anything.
 * occlInvalidArgument without an epoch; else errors are those of the epoch. */
OCCL_API occlResult_t occlPprepare(occlPart_t part);

/* Marks a partition, those from first to last (both included), or those of a list as ready. Never
 * waits: an atomic operation or two, and a wake-up if somebody sleeps who can go on with it.
 * occlInvalidArgument: a receive, or a rank without input; not started; one that there is not,
 * where nothing is marked; one that is ready already, the first of which is named, and all others
 * are marked. */
OCCL_API occlResult_t occlPready(occlPart_t part, int64_t partition);
OCCL_API occlResult_t occlPreadyRange(occlPart_t part, int64_t first, int64_t last);
OCCL_API occlResult_t occlPreadyList(occlPart_t part, uint64_t number, const int64_t *partitions);

/* *arrived: 1 if the partition has arrived in this epoch, so that it may be accessed; also without
 * an epoch; else 0. Once the communicator has failed, why, unless it has arrived in this epoch.
 * Takes what is in flight one look further. occlInvalidArgument: a send, a rank without output, or
 * no such partition. */
OCCL_API occlResult_t occlParrived(occlPart_t part, int64_t partition, int32_t *arrived);

/* The epoch's end: of a send, when all has been read and the buffer is the program's again; of a
 * receive, when all has arrived. occlPtest is occlInProgress before that, and never waits. Without
 * an epoch both are occlSuccess. */
OCCL_API occlResult_t occlPtest(occlPart_t part);
OCCL_API occlResult_t occlPwait(occlPart_t part);

/* occlInvalidArgument: it has an epoch that no failure has ended; it lives on then. NULL is nothing
 * to do. A peer that starts one more epoch fails with occlMismatch. */
OCCL_API occlResult_t occlPfree(occlPart_t part);

#ifdef __cplusplus
}
#endif

#endif /* OCCL_PARTITIONED_H */
