#include "nccl/abi/exports.h"
#include "nccl/calls/group.h"
#include "nccl/comm/handles.h"
#include "nccl/streams/streams.h"
#include "support/nvtx/ranges.h"

namespace occl::nccl {

namespace {

struct Arguments {
  occlKind_t kind;
  const void *send;
  void *recv;
  size_t count;
  ncclDataType_t type;
  int root = 0;
  ncclRedOp_t op = ncclSum;
};

bool hasRoot(occlKind_t kind) {
  return kind == occlKindBroadcast || kind == occlKindReduce || kind == occlKindGather ||
         kind == occlKindScatter;
}

/// The buffers that this rank has to give.
Outcome checkBuffers(const Arguments &arguments, bool isRoot) {
  // Of rooted collectives the others' buffers are never touched, and NCCL's programs pass NULL
  // there.
  const bool reads =
      isRoot || (arguments.kind != occlKindBroadcast && arguments.kind != occlKindScatter);
  const bool writes =
      isRoot || (arguments.kind != occlKindReduce && arguments.kind != occlKindGather);
  if (reads && !arguments.send)
    return invalidArgument("sendbuff must not be NULL");
  if (writes && !arguments.recv)
    return invalidArgument("recvbuff must not be NULL");
  return {};
}

Outcome checkRoot(const Comm &comm, int root) {
  uint32_t numRanks = 0, rank = 0;
  if (root < 0 || (comm.shapeIfKnown(numRanks, rank) && static_cast<uint32_t>(root) >= numRanks))
    return invalidArgument("root is " + std::to_string(root) + ", the communicator has " +
                           std::to_string(numRanks) + " ranks");
  return {};
}

Outcome collective(const std::shared_ptr<Comm> &comm, const Arguments &arguments,
                   cudaStream_t stream) {
  Operation operation;
  occlCall_t &call = operation.call;
  if (!typeOf(arguments.type, call.dataType))
    return invalidArgument("datatype " + std::to_string(arguments.type) + " is unknown");
  // More elements than an address space has bytes; OCCL computes with the bytes of all ranks.
  constexpr size_t kMostElements = size_t{1} << 48;
  if (arguments.count > kMostElements)
    return invalidArgument("count is " + std::to_string(arguments.count) + ", at most 2^48");
  // Checks that need no other rank come first: their errors leave the communicator usable.
  if (Outcome outcome = checkRoot(*comm, arguments.root); !outcome.ok())
    return outcome;
  if (Outcome outcome = comm->redOps.apply(arguments.op, arguments.type, operation); !outcome.ok())
    return outcome;
  if (Outcome outcome = streams().check(stream); !outcome.ok())
    return outcome;
  if (comm->isFinalized())
    return invalidUsage("ncclCommFinalize was called for the communicator");
  if (arguments.count == 0)
    return {}; // on all ranks, so nobody waits
  // A communicator that does not block may not have its ranks yet.
  uint32_t numRanks = 0, rank = 0;
  const bool isRankKnown = comm->shapeIfKnown(numRanks, rank);
  const bool isRoot = !hasRoot(arguments.kind) || static_cast<uint32_t>(arguments.root) == rank;
  // What is not known yet is OCCL's to find out.
  if (isRankKnown || !hasRoot(arguments.kind))
    if (Outcome outcome = checkBuffers(arguments, isRoot); !outcome.ok())
      return outcome;
  call.kind = arguments.kind;
  call.sendBuffer = arguments.send;
  call.recvBuffer = arguments.recv;
  call.count = arguments.count;
  call.root = static_cast<uint32_t>(arguments.root);
  // As in NCCL: a collective waits as long as it takes, and an abort ends it.
  call.timeoutMs = OCCL_NO_TIMEOUT;
  operation.stream = stream;
  return submit(comm, operation);
}

ncclResult_t run(const char *function, ncclComm_t handle, cudaStream_t stream,
                 const Arguments &arguments) {
  // An error within a group is the group's as well: ncclGroupEnd must not execute the rest.
  return inGroup(guarded(function, [&]() -> Outcome {
    std::shared_ptr<Comm> comm;
    Outcome found = find(handle, comm);
    if (!found.ok())
      return found;
    // For profilers: the range is named after the function, and the size is computed only if one
    // listens.
    const nvtx::Range range([&]() -> nvtx::Named {
      return {function, comm->category(), arguments.count * bytesOf(arguments.type)};
    });
    return collective(comm, arguments, stream);
  }));
}

} // namespace

} // namespace occl::nccl

using namespace occl::nccl;

ncclResult_t ncclAllReduce(const void *send, void *recv, size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return run("ncclAllReduce", comm, stream, {occlKindAllReduce, send, recv, count, type, 0, op});
}
OCCL_NCCL_SECOND_NAME(ncclAllReduce);

ncclResult_t ncclReduce(const void *send, void *recv, size_t count, ncclDataType_t type,
                        ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream) {
  return run("ncclReduce", comm, stream, {occlKindReduce, send, recv, count, type, root, op});
}
OCCL_NCCL_SECOND_NAME(ncclReduce);

ncclResult_t ncclBroadcast(const void *send, void *recv, size_t count, ncclDataType_t type,
                           int root, ncclComm_t comm, cudaStream_t stream) {
  return run("ncclBroadcast", comm, stream, {occlKindBroadcast, send, recv, count, type, root});
}
OCCL_NCCL_SECOND_NAME(ncclBroadcast);

ncclResult_t ncclBcast(void *buffer, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                       cudaStream_t stream) {
  return run("ncclBcast", comm, stream, {occlKindBroadcast, buffer, buffer, count, type, root});
}
OCCL_NCCL_SECOND_NAME(ncclBcast);

ncclResult_t ncclReduceScatter(const void *send, void *recv, size_t recvCount, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return run("ncclReduceScatter", comm, stream,
             {occlKindReduceScatter, send, recv, recvCount, type, 0, op});
}
OCCL_NCCL_SECOND_NAME(ncclReduceScatter);

ncclResult_t ncclAllGather(const void *send, void *recv, size_t sendCount, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
  return run("ncclAllGather", comm, stream, {occlKindAllGather, send, recv, sendCount, type});
}
OCCL_NCCL_SECOND_NAME(ncclAllGather);

ncclResult_t ncclAlltoAll(const void *send, void *recv, size_t count, ncclDataType_t type,
                          ncclComm_t comm, cudaStream_t stream) {
  return run("ncclAlltoAll", comm, stream, {occlKindAllToAll, send, recv, count, type});
}
OCCL_NCCL_SECOND_NAME(ncclAlltoAll);

ncclResult_t ncclGather(const void *send, void *recv, size_t count, ncclDataType_t type, int root,
                        ncclComm_t comm, cudaStream_t stream) {
  return run("ncclGather", comm, stream, {occlKindGather, send, recv, count, type, root});
}
OCCL_NCCL_SECOND_NAME(ncclGather);

ncclResult_t ncclScatter(const void *send, void *recv, size_t count, ncclDataType_t type, int root,
                         ncclComm_t comm, cudaStream_t stream) {
  return run("ncclScatter", comm, stream, {occlKindScatter, send, recv, count, type, root});
}
OCCL_NCCL_SECOND_NAME(ncclScatter);
