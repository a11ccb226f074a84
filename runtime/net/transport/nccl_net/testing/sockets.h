// A network over TCP sockets, for the network plugin of tests: what the interfaces of all versions
// have in common. It aborts if two threads are in one comm, or in one context, at a time, or if
// something is used after it was closed: NCCL does not do that either.
#pragma once

#include "runtime/net/transport/nccl_net/abi.h"

#include <cstddef>

namespace occl::net::test_plugin {

/// Results are NCCL's. `context` may be null.
int init(void **context, nccl::Logger logger);
int finalize(void *context);
int devices(int *count);
/// "sock0", and so on: addresses of this machine in turn, loopback if there are no others.
int nameOf(int device, char **name, size_t *mostBytes);
int listen(void *context, int device, void *handle, void **listenComm);
int connect(void *context, int device, void *handle, void **sendComm);
int accept(void *listenComm, void **recvComm);
int regMr(void *comm, void *data, size_t bytes, int type, void **registration);
int deregMr(void *comm, void *registration);
int isend(void *sendComm, void *data, size_t bytes, void *registration, void **request);
int irecv(void *recvComm, void *data, size_t bytes, void *registration, void **request);
int test(void *request, int *isDone, int *bytes);
int closeComm(void *comm);

} // namespace occl::net::test_plugin
