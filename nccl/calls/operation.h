// What is to be executed, between the call that asks for it and the stream that does it.
#pragma once

#include "nccl/base/errors.h"
#include "runtime/api/occl.h"

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace occl::nccl {

class Comm;

enum class OperationKind { Collective, Send, Receive };

/// One call of the interface, checked as far as it can be at the call.
struct Operation {
  OperationKind kind = OperationKind::Collective;
  occlCall_t call = OCCL_CALL_INITIALIZER; // of sends and receives: buffer, count, dataType
  uint32_t peer = 0;                       // of sends and receives
  cudaStream_t stream = nullptr;
  /// A pre-multiplied sum's factor: this, or what lies at deviceScalar when it runs.
  bool hasScalar = false;
  std::array<unsigned char, 8> scalar{};
  const void *deviceScalar = nullptr;
};

/// The operations of one communicator that are begun together: collectives one after the other,
/// then all transfers at once. That is an order on which ranks agree however a group mixes them.
struct Batch {
  std::shared_ptr<Comm> comm;
  std::vector<Operation> collectives, transfers;

  void add(const Operation &operation) {
    (operation.kind == OperationKind::Collective ? collectives : transfers).push_back(operation);
  }
};

/// To the group of the calling thread: those of a communicator, until one is refused.
Outcome addTransfers(occlComm_t comm, const std::vector<Operation> &transfers);
/// Of the group's other communicators, if that has refused one: nothing of the group begins.
Outcome besideRefused(const Outcome &refused);

/// OCCL's name of NCCL's type; false if there is no such type.
bool typeOf(ncclDataType_t type, occlDataType_t &to);
/// The other way round.
ncclDataType_t typeOf(occlDataType_t type);
ncclRedOp_t opOf(occlRedOp_t op);
size_t sizeOf(occlDataType_t type);
/// Of an element; 0 if there is no such type.
inline size_t bytesOf(ncclDataType_t type) {
  occlDataType_t known;
  return typeOf(type, known) ? sizeOf(known) : 0;
}

} // namespace occl::nccl
