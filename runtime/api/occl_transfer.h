/* Transfers between two ranks, groups of them, and the collectives with counts by rank that are
 * known at the call. On devices (occlDeviceCuda) they are work of the stream: see below.
 *
 * The transfers of an ordered pair of ranks, source and destination, are a sequence of their own:
 * the k-th send of r to s belongs to the k-th receive at s from r, whatever else is in flight. So
 * threads of a rank that send to one rank, or receive from one, order that between them. Count and
 * type must be the same on both sides: else the communicator fails on all ranks with occlMismatch,
 * which names count and type of both, when the receiver comes to it. A count may be 0; that is a
 * transfer, too. Buffers are any memory, aligned to anything, and are not accessed by others after
 * the call.
 *
 * Outside of a group a call returns when it has ended here, so that the buffer is the caller's
 * again. A receive ends with the data. A send of at most OCCL_EAGER_BYTES ends when the data are in
 * the ring of the pair, which has 256 KiB (128 KiB with more than 512 ranks), for data and 64 bytes
 * each: without the receiver, as long as transfers that it has not received leave that room, and
 * after those before it that other threads of the rank send there have ended. A larger one ends
 * when the receiver has read it, or, where ranks are processes that may not read each other's
 * memory or are on different machines, when all but 256 KiB of it have been received. So ranks that
 * send such ones to each other in a cycle before they receive wait for each other, for ever without
 * a deadline; likewise a rank that sends one to itself outside of a group, unless another of its
 * threads receives it.
 *
 * Between occlGroupStart and the occlGroupEnd that belongs to it calls, of any number of
 * communicators, are only remembered. occlGroupEnd begins all of them and returns when they have
 * ended here; what it has of a communicator that has failed does not hold up the others. All
 * transfers of a group progress together, so groups end whatever the order is in
 * which ranks have made their calls, as long as each transfer has its other side: in a group, or in
 * a call that the other rank comes to without this group's end. All transfers of a group to one
 * rank end together, and all from one, for another thread of the rank with transfers behind them.
 *
 * Deadlines are those of the communicator (occlConfig_t::timeoutMs), from the call, in a group from
 * its end on. Abort, ranks that are gone, long waits and reports are as with collectives: they name
 * the transfer, its ranks, and the rank that is waited for. In occlStats_t transfers count in
 * bytesSent and bytesReceived, also those of a rank with itself. But for
 * occlGroupEndAsync they take no request and none of maxInFlight; none takes of arenaBytes; a pair
 * that has been used takes its ring's memory. A communicator with config->preemption 2 has no
 * transfers: its executors keep to one task at a time, and a group has several; that is
 * occlInvalidArgument.
 *
 * On devices a call, or a group, becomes the next work of its streams, or nodes of the graph that
 * captures them, and returns. Buffers are memory of the device. All streams that a group names of a
 * communicator are joined: it begins behind what each has, and each goes on behind its end; all are
 * captured, in one capture, or none. Calls with a direction of a pair in common run one after the
 * other, in the order of the calls whatever their streams, a group as a whole; what graphs have
 * captured is ordered by their streams and the program's events alone, and a replay beside another
 * call of the same direction fails the communicator. A send ends when the data are in the pair's
 * 128 slots: a transfer takes one for each begun 4 KiB, above 256 KiB for each 32 KiB or more, to
 * oneself always for each 4 KiB, and one if it is empty. (Slots are smaller with less than 256 MiB
 * of device memory in all or with more ranks, of 512 bytes at least.) Their memory is part of
 * arenaBytes; where that is too little (2 MiB a rank of the communicator) calls are
 * occlInvalidArgument. If a group has both sides of all that a rank sends to itself, and nothing
 * from before waits to be received, these are copied; they belong to each other also in a graph
 * that is replayed while something does wait. A rank that failed or was aborted, deadlines and
 * mismatches are found by the kernel and become the communicator's failure; occlStats_t counts
 * nothing of them. There is no occlGroupEndAsync. The communicators of a group do not wait for each
 * other, also in one stream.
 *
 * On hosts stream is NULL. Functions may be called from any thread, also from callbacks, which are
 * outside of the groups of threads that call them; one that does not end a group that it has begun
 * has failed. A call that is refused on one rank has no number: its other side waits for the next.
 */
#ifndef OCCL_TRANSFER_H
#define OCCL_TRANSFER_H

#include "occl.h"

#ifdef __cplusplus
extern "C" {
#endif

#define OCCL_EAGER_BYTES 65536

/* count elements of the buffer become those of the buffer that rank `peer` receives into; peer may
 * be this rank. */
OCCL_API occlResult_t occlSend(const void *buffer, uint64_t count, occlDataType_t dataType,
                               uint32_t peer, occlComm_t comm, struct CUstream_st *stream);
/* The other side. The buffer must not overlap one that the group sends from, but for a transfer
 * to oneself from and to the same place, which does nothing. */
OCCL_API occlResult_t occlRecv(void *buffer, uint64_t count, occlDataType_t dataType, uint32_t peer,
                               occlComm_t comm, struct CUstream_st *stream);

/* A group of the calling thread. May be nested: all ends with the outermost. Inside of one occlCall
 * on hosts is occlInvalidArgument; occlStart and all else are as outside. Communicators with calls
 * in a group must not be destroyed before its end. */
OCCL_API occlResult_t occlGroupStart(void);
/* occlInvalidArgument without occlGroupStart. If a call inside was refused, nothing of the group is
 * begun, and this is the first such result. Else success, or the first communicator's error. */
OCCL_API occlResult_t occlGroupEnd(void);

/* Ends the group as occlGroupEnd does, but returns once its transfers have begun. All its calls are
 * of this communicator; it may have none. The request is complete, and the callback is called, when
 * all of them have ended here; until then buffers are the caller's to leave alone, and what
 * occlStart says of callbacks and requests holds (callbackNeverBlocks: callbacksNeverBlock of
 * occlCall_t). callback and request may be NULL, not both. The transfers of a pair have the order
 * in which groups with them were ended. occlAgain: all requests that the
 * communicator has (maxInFlight) are taken; with any error nothing of the group is begun, and it is
 * over. occlInvalidArgument also for a group inside of another one, whose end is then refused, too.
 */
OCCL_API occlResult_t occlGroupEndAsync(occlComm_t comm, uint32_t callbackNeverBlocks,
                                        occlCallback_t callback, void *user,
                                        occlRequest_t *request);

/* The following are groups of the calls above, or parts of the group that they are in. So they
 * share the sequences of pairs with sends and receives; and ranks agree in counts by pair, which is
 * where a mismatch is found, and need not know those of others. Counts and displacements are in
 * elements; displacements are from the begin of the buffer. Arrays have an entry for each rank. */

/* sendCounts[q] elements at sendDisplacements[q] of rank r's sendBuffer become the recvCounts[r] at
 * recvDisplacements[r] of rank q's recvBuffer. */
OCCL_API occlResult_t occlAllToAllv(const void *sendBuffer, const uint64_t *sendCounts,
                                    const uint64_t *sendDisplacements, void *recvBuffer,
                                    const uint64_t *recvCounts, const uint64_t *recvDisplacements,
                                    occlDataType_t dataType, occlComm_t comm,
                                    struct CUstream_st *stream);
/* The sendCount elements of rank q's sendBuffer become the recvCounts[q] at recvDisplacements[q] of
 * all recvBuffers. sendBuffer may be its own place in recvBuffer. */
OCCL_API occlResult_t occlAllGatherv(const void *sendBuffer, uint64_t sendCount, void *recvBuffer,
                                     const uint64_t *recvCounts, const uint64_t *recvDisplacements,
                                     occlDataType_t dataType, occlComm_t comm,
                                     struct CUstream_st *stream);
/* The same for the root's recvBuffer alone; recv... of other ranks are ignored. */
OCCL_API occlResult_t occlGatherv(const void *sendBuffer, uint64_t sendCount, void *recvBuffer,
                                  const uint64_t *recvCounts, const uint64_t *recvDisplacements,
                                  occlDataType_t dataType, uint32_t root, occlComm_t comm,
                                  struct CUstream_st *stream);
/* The sendCounts[q] elements at sendDisplacements[q] of the root's sendBuffer become the recvCount
 * of rank q's recvBuffer, which may be its own place in sendBuffer on the root. send... of other
 * ranks are ignored. */
OCCL_API occlResult_t occlScatterv(const void *sendBuffer, const uint64_t *sendCounts,
                                   const uint64_t *sendDisplacements, void *recvBuffer,
                                   uint64_t recvCount, occlDataType_t dataType, uint32_t root,
                                   occlComm_t comm, struct CUstream_st *stream);

#ifdef __cplusplus
}
#endif

#endif /* OCCL_TRANSFER_H */
