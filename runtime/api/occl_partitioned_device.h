/* Partitioned requests of ranks on devices: those of a communicator with occlDeviceCuda. Epochs are
 * work of streams; partitions are marked there, or inside kernels by occl_device.cuh. What follows
 * is of sends and receives; what differs for collectives is said at the end.
 *
 * Shapes, matching and errors are those of occl_partitioned.h. Requests are matched by host threads
 * of the library, so neither side's program need be in a call.
 *
 * Buffers. A receive's is of occlMemAlloc of the same communicator: the sender's kernels store
 * there. A send's is any memory of the rank's device. All devices of the communicator access each
 * other's memory, and its ranks are of one machine.
 *
 * Progress. The mark that completes a message stores the message to the receiver, at once, if the
 * receiver has started the epoch; marks never wait. What could not be sent then is sent by
 * occlPwaitOn of the send, or by a device function that waits for it. So an epoch ends though no
 * two kernels are on the devices at a time: of all that is here only occlPwaitOn and occlPprepareOn
 * wait, in their stream, on one multiprocessor after a moment.
 *
 * Streams. What is enqueued for a request is ordered by the program, as for one buffer: start,
 * marks, wait, start again. Replays of graphs take the next epochs.
 *
 * Errors. Of the arguments: as said. Later ones, also misuse by kernels (a partition that there is
 * not or that is marked already, no epoch, the wrong side), end the communicator when the wait of
 * the epoch finds them, with a text that names request, epoch, partition and thread block. The
 * communicator's timeout counts from the first look of a wait that finds nothing to do. Waits are
 * occlAgain where they would take the last connection to the device (CUDA_DEVICE_MAX_CONNECTIONS).
 *
 * occlPstart, occlPready..., occlParrived, occlPtest, occlPwait and occlPprepare are for requests
 * on hosts: occlInvalidArgument. occlPfree: occlInvalidArgument while an epoch has not ended;
 * streams and graphs with work of the request have ended, or are destroyed, before.
 *
 * Collectives (occlPcollInit). An epoch is executed by the persistent kernel that executes
 * occlStart, after the stream of its start; buffers are any memory of the device. Kernels mark
 * partitions of the input, and ask for those of the output; that never waits for another kernel. An
 * output partition arrives once all ranks have marked what its rounds read (occl_partitioned.h).
 * - The host begins epochs: occlPstartOn and occlPwaitOn of a captured stream are
 *   occlInvalidArgument, and so is a second start before a wait was put into a stream. Marks may be
 *   captured.
 * - What is to mark is launched before anything that CUDA may have wait for a stream that waits:
 *   copies to pageable memory, and as many such streams as there are connections, behind which
 *   occlPwaitOn is occlAgain.
 * - A kernel that waits for an arrival leaves a multiprocessor to the persistent kernel, one for
 *   each kind of call that it serves (sums of floats or anything, small or large). Kernels that
 *   need all multiprocessors at once cannot mark.
 * - Sends whose marks were left are not sent by occlPwaitOn of a collective: occlPwaitOn of the
 *   send, or occlPprepareOn before the marks, comes first.
 * - occlPcollInit is occlAgain beyond as many requests as half of the communicator's connection
 *   sets (64 with memory enough, see gpu.md), on all ranks alike. Where a rank has no memory left
 *   it is occlAgain, or occlSystemError, on that rank alone, and the text says so: other ranks may
 *   have the request. Unless all are refused, the program makes memory free there, and makes the
 *   same again before any other: another one in its place fails the communicator (occlMismatch),
 *   if it differs in kind, count, type, operation, plan or rounds. occlPstartOn is occlAgain when
 *   calls after streams hold all of the rest, and nothing was done. Until an epoch has ended at
 *   most 255 calls that were started after it are executed.
 * - occlInvalidArgument: scalars; averages of float16 and fp8; in place with a plan that is not
 *   valid so; more than 65,536 partitions of a buffer; plans compiled with --direct; ranks on
 *   several machines.
 */
#ifndef OCCL_PARTITIONED_DEVICE_H
#define OCCL_PARTITIONED_DEVICE_H

#include "occl_partitioned.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What kernels have of a request, to be passed by value. Valid until it is freed. */
typedef struct {
  void *state; /* device memory of the rank, of the library */
} occlPartDevice_t;

/* Begins the next epoch as the stream's next work. A kernel that does not wait. */
OCCL_API occlResult_t occlPstartOn(occlPart_t part, void *stream);

/* Marks partitions first to last, both included: what the stream has done before is sent. Does not
 * wait. Partitions of a send are stored to the receiver by a kernel; or, as a whole, by a copy
 * engine, which takes no multiprocessor, if these are whole messages of together 1 MiB or more, and
 * the host has seen that the receiver has started: occlPprepareOn of this epoch has ended (the host
 * has waited for its stream, or an event behind it). Not so in a captured stream, and not of a send
 * that was captured before, or whose handle the program has asked for (occlPdevice). */
OCCL_API occlResult_t occlPreadyOn(occlPart_t part, int64_t first, int64_t last, void *stream);

/* Of a send that has an epoch: what follows in the stream finds it begun by the receiver, so marks
 * send at once; and by copy engines, see occlPreadyOn. Else not needed for anything. Of a receive
 * it does nothing. */
OCCL_API occlResult_t occlPprepareOn(occlPart_t part, void *stream);

/* The end of the epoch. Of a send: all partitions have been marked, and what follows may change the
 * buffer; of a receive: all have arrived. */
OCCL_API occlResult_t occlPwaitOn(occlPart_t part, void *stream);

/* Fills in *handle. Local, allocates nothing. From here on copy engines carry out no marks of a
 * send. */
OCCL_API occlResult_t occlPdevice(occlPart_t part, occlPartDevice_t *handle);

/* The same where kernels take no structures: *pointer, an address of device memory, is what the
 * functions of occl_device.bc take (Triton: docs/python.md), and a handle's `state`. Local,
 * allocates nothing; valid until the request is freed. */
OCCL_API occlResult_t occlPdevicePointer(occlPart_t part, void **pointer);

#ifdef __cplusplus
}
#endif

#endif /* OCCL_PARTITIONED_DEVICE_H */
