#include "nccl/fallback/pass_on.h"

#include "nccl/fallback/other_comm.h"

#include "nccl/comm/comm.h"

namespace occl::nccl {

namespace {

Outcome missing(const OtherNccl &nccl, const char *function) {
  return invalidUsage(nccl.title() + ", which has this communicator, has no " + function);
}

/// A pre-multiplied sum of the other library's, from before a call to after it.
class TheirOp {
public:
  TheirOp(const OtherNccl &nccl, ncclComm_t comm) : nccl(nccl), comm(comm) {}
  ~TheirOp() {
    if (isMade)
      nccl.ncclRedOpDestroy(op, comm);
  }
  TheirOp(const TheirOp &) = delete;
  TheirOp &operator=(const TheirOp &) = delete;

  Outcome make(const Operation &operation) {
    // Sums with a scalar are operations of a communicator in NCCL, so that the other library needs
    // one of its own, for this call.
    op = opOf(operation.call.op);
    if (!operation.hasScalar)
      return {};
    if (!nccl.ncclRedOpCreatePreMulSum || !nccl.ncclRedOpDestroy)
      return missing(nccl, "ncclRedOpCreatePreMulSum");
    auto scalar = operation.scalar;
    const bool isOnDevice = operation.deviceScalar != nullptr;
    const ncclResult_t result = nccl.ncclRedOpCreatePreMulSum(
        &op, isOnDevice ? const_cast<void *>(operation.deviceScalar) : scalar.data(),
        typeOf(operation.call.dataType), isOnDevice ? ncclScalarDevice : ncclScalarHostImmediate,
        comm);
    isMade = result == ncclSuccess;
    return nccl.outcomeOf(result);
  }
  ncclRedOp_t get() const { return op; }

private:
  const OtherNccl &nccl;
  const ncclComm_t comm;
  ncclRedOp_t op = ncclSum;
  bool isMade = false;
};

struct Call {
  const OtherNccl &nccl;
  const ncclComm_t comm;
  ncclResult_t result = ncclSuccess;

  /// With the communicator and the stream behind `arguments`.
  template <class Function, class... Arguments>
  Outcome run(const char *name, Function function, const Operation &operation,
              Arguments... arguments) {
    if (!function)
      return missing(nccl, name);
    result = function(arguments..., comm, operation.stream);
    return nccl.outcomeOf(result == ncclInProgress ? ncclSuccess : result);
  }
#define OCCL_THEIRS(name) run(#name, nccl.name, operation

  Outcome collective(const Operation &operation) {
    const occlCall_t &call = operation.call;
    TheirOp op(nccl, comm);
    if (Outcome outcome = op.make(operation); !outcome.ok())
      return outcome;
    // Back from OCCL's numbers to NCCL's. The kinds are those that NCCL has a function for;
    // averages and sums with scalars are in the operation.
    const ncclDataType_t type = typeOf(call.dataType);
    const void *from = call.sendBuffer;
    void *to = call.recvBuffer;
    const size_t count = call.count;
    const int root = static_cast<int>(call.root);
    switch (call.kind) {
    case occlKindAllReduce:
      return OCCL_THEIRS(ncclAllReduce), from, to, count, type, op.get());
    case occlKindReduce:
      return OCCL_THEIRS(ncclReduce), from, to, count, type, op.get(), root);
    case occlKindReduceScatter:
      return OCCL_THEIRS(ncclReduceScatter), from, to, count, type, op.get());
    case occlKindBroadcast:
      return OCCL_THEIRS(ncclBroadcast), from, to, count, type, root);
    case occlKindAllGather:
      return OCCL_THEIRS(ncclAllGather), from, to, count, type);
    case occlKindAllToAll:
      return OCCL_THEIRS(ncclAlltoAll), from, to, count, type);
    case occlKindGather:
      return OCCL_THEIRS(ncclGather), from, to, count, type, root);
    case occlKindScatter:
      return OCCL_THEIRS(ncclScatter), from, to, count, type, root);
    default:
      return {ncclInternalError, "a collective that NCCL does not have"};
    }
  }

  Outcome transfer(const Operation &operation) {
    const occlCall_t &call = operation.call;
    const ncclDataType_t type = typeOf(call.dataType);
    const int peer = static_cast<int>(operation.peer);
    if (operation.kind == OperationKind::Send)
      return OCCL_THEIRS(ncclSend), call.sendBuffer, size_t{call.count}, type, peer);
    return OCCL_THEIRS(ncclRecv), call.recvBuffer, size_t{call.count}, type, peer);
  }
#undef OCCL_THEIRS
};

size_t numOperations(const std::vector<const Batch *> &batches) {
  size_t sum = 0;
  for (const Batch *batch : batches)
    sum += batch->collectives.size() + batch->transfers.size();
  return sum;
}

} // namespace

Outcome passOn(const std::vector<const Batch *> &batches) {
  // A single call needs no group, and gives its result at once.
  const bool isGroup = numOperations(batches) > 1;
  std::vector<std::shared_ptr<OtherComm>> comms;
  Outcome first;
  ncclResult_t result = ncclSuccess;
  // The first error is the cause; those that follow are consequences.
  auto note = [&](const Outcome &outcome) {
    if (first.ok())
      first = outcome;
  };
  // All communicators are asked for before the group begins: an error in between would leave the
  // library's group open.
  for (const Batch *batch : batches) {
    Executor executor;
    if (Outcome outcome = batch->comm->forCall(executor); !outcome.ok())
      return outcome;
    comms.push_back(executor.other);
  }
  if (comms.empty())
    return {};
  const OtherNccl &nccl = comms[0]->nccl;
  // One group for all communicators, because their calls may wait for each other.
  if (isGroup)
    note(nccl.outcomeOf(nccl.ncclGroupStart()));
  for (size_t i = 0; i < batches.size(); ++i) {
    Call call{nccl, comms[i]->handle()};
    // After an error nothing more is called, but the group is ended: it is the thread's.
    for (const Operation &operation : batches[i]->collectives)
      if (first.ok())
        note(call.collective(operation));
    for (const Operation &operation : batches[i]->transfers)
      if (first.ok())
        note(call.transfer(operation));
    result = call.result;
  }
  if (isGroup) {
    result = nccl.ncclGroupEnd();
    // In progress is no error: the communicators are waited for below.
    note(nccl.outcomeOf(result == ncclInProgress ? ncclSuccess : result));
  }
  for (const auto &comm : comms)
    if (result == ncclInProgress)
      note(comm->settle(result));
  return first;
}

} // namespace occl::nccl
