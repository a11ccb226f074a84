/* Where ranks of several machines meet: for frameworks whose ranks tell each other what they need
 * through a store of their own. docs/machines.md says what launchers do. */
#ifndef OCCL_RENDEZVOUS_H
#define OCCL_RENDEZVOUS_H

#include "occl.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The host id of this process: equal for ranks that share memory, and can have a communicator
 * whose name has no address. Made of machine, user and namespaces, or given by OCCL_HOSTID. Writes
 * at most `capacity` bytes with the 0 at the end; *length is that of the whole text, without it.
 * length may be NULL. */
OCCL_API occlResult_t occlHostId(char *text, size_t capacity, size_t *length);

/* Of the process that is to be rank 0 of a communicator: a free port, kept free for it. */
typedef struct occlRendezvous_st *occlRendezvous_t;
/* *name is a name for occlCommInitRank on all ranks, HOST:PORT/SECRET, valid until this is closed:
 * whoever knows it may join, so it is for no log. HOST is of the interface that OCCL_SOCKET_IFNAME,
 * or NCCL_SOCKET_IFNAME, and NCCL_SOCKET_FAMILY choose; if none is set, the address by which this
 * machine reaches the host `towards`, such as that of the store; if that is NULL or known by
 * loopback alone, that of the first interface. occlSystemError if there is no such interface, or no
 * free port. */
OCCL_API occlResult_t occlRendezvousOpen(const char *towards, occlRendezvous_t *rendezvous,
                                         const char **name);
/* Once occlCommInitRank has returned on rank 0. NULL is nothing to do. */
OCCL_API occlResult_t occlRendezvousClose(occlRendezvous_t rendezvous);

#ifdef __cplusplus
}
#endif

#endif
