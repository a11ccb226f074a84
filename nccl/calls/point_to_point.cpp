#include "nccl/abi/exports.h"
#include "nccl/calls/group.h"
#include "nccl/comm/handles.h"
#include "nccl/streams/streams.h"
#include "runtime/api/occl_transfer.h"
#include "support/nvtx/ranges.h"

namespace occl::nccl {

namespace {

Outcome transfer(const std::shared_ptr<Comm> &comm, OperationKind kind, void *buffer, size_t count,
                 ncclDataType_t type, int peer, cudaStream_t stream) {
  Operation operation;
  operation.kind = kind;
  // Arguments first, as for collectives. Whether the peer exists is checked again when the group
  // begins, as the number of ranks may not be known yet.
  if (!typeOf(type, operation.call.dataType))
    return invalidArgument("datatype " + std::to_string(type) + " is unknown");
  constexpr size_t kTooMany = size_t{1} << 48;
  if (count >= kTooMany)
    return invalidArgument("count is " + std::to_string(count) + ", it must be less than 2^48");
  uint32_t numRanks = 0, rank = 0;
  if (peer < 0 || (comm->shapeIfKnown(numRanks, rank) && static_cast<uint32_t>(peer) >= numRanks))
    return invalidArgument("peer is " + std::to_string(peer) + ", the communicator has " +
                           std::to_string(numRanks) + " ranks");
  if (count > 0 && !buffer)
    return invalidArgument("the buffer must not be NULL");
  // The stream's context must be there before anything is put into it.
  if (Outcome outcome = streams().check(stream); !outcome.ok())
    return outcome;
  if (comm->isFinalized())
    return invalidUsage("ncclCommFinalize was called for the communicator");
  // One buffer for both directions: the kind says which of them it is.
  operation.call.count = count;
  operation.call.sendBuffer = operation.call.recvBuffer = buffer;
  operation.peer = static_cast<uint32_t>(peer);
  operation.stream = stream;
  return submit(comm, operation);
}

ncclResult_t run(const char *function, ncclComm_t handle, OperationKind kind, void *buffer,
                 size_t count, ncclDataType_t type, int peer, cudaStream_t stream) {
  return inGroup(guarded(function, [&]() -> Outcome {
    std::shared_ptr<Comm> comm;
    Outcome found = find(handle, comm);
    if (!found.ok())
      return found;
    const nvtx::Range range([&]() -> nvtx::Named {
      return {function, comm->category(), count * bytesOf(type)};
    });
    return transfer(comm, kind, buffer, count, type, peer, stream);
  }));
}

} // namespace

Outcome addTransfers(occlComm_t comm, const std::vector<Operation> &transfers) {
  // In the program's order, which is the order in which transfers between two ranks meet.
  for (const Operation &each : transfers) {
    const occlCall_t &call = each.call;
    const Outcome outcome = outcomeOf(
        each.kind == OperationKind::Send
            ? occlSend(call.sendBuffer, call.count, call.dataType, each.peer, comm, each.stream)
            : occlRecv(call.recvBuffer, call.count, call.dataType, each.peer, comm, each.stream));
    if (!outcome.ok())
      return outcome;
  }
  return {};
}

Outcome besideRefused(const Outcome &refused) {
  return {refused.result,
          "another communicator's transfer in the group was refused: " + refused.text};
}

} // namespace occl::nccl

using namespace occl::nccl;

ncclResult_t ncclSend(const void *send, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  return run("ncclSend", comm, OperationKind::Send, const_cast<void *>(send), count, type, peer,
             stream);
}
OCCL_NCCL_SECOND_NAME(ncclSend);

ncclResult_t ncclRecv(void *recv, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return run("ncclRecv", comm, OperationKind::Receive, recv, count, type, peer, stream);
}
OCCL_NCCL_SECOND_NAME(ncclRecv);
