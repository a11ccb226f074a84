#include "nccl/calls/red_ops.h"

#include "nccl/abi/exports.h"
#include "nccl/comm/handles.h"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace occl::nccl {

namespace {

constexpr occlDataType_t kTypes[] = {occlInt8,    occlUint8,    occlInt32,      occlUint32,
                                     occlInt64,   occlUint64,   occlFloat16,    occlFloat32,
                                     occlFloat64, occlBfloat16, occlFloat8E4m3, occlFloat8E5m2};
static_assert(std::size(kTypes) == ncclNumTypes);

constexpr occlRedOp_t kOps[] = {occlSum, occlProd, occlMax, occlMin, occlAvg};
static_assert(std::size(kOps) == ncclNumOps);

/// Of all communicators, so that one's operation is not taken for another's.
std::atomic<int> nextOp = ncclNumOps;

Outcome unknownType(ncclDataType_t type) {
  return invalidArgument("data type " + std::to_string(type) + " is unknown");
}

} // namespace

bool typeOf(ncclDataType_t type, occlDataType_t &to) {
  if (static_cast<unsigned>(type) >= ncclNumTypes)
    return false;
  to = kTypes[type];
  return true;
}

ncclDataType_t typeOf(occlDataType_t type) {
  return static_cast<ncclDataType_t>(std::find(std::begin(kTypes), std::end(kTypes), type) -
                                     std::begin(kTypes));
}

ncclRedOp_t opOf(occlRedOp_t op) {
  return static_cast<ncclRedOp_t>(std::find(std::begin(kOps), std::end(kOps), op) -
                                  std::begin(kOps));
}

size_t sizeOf(occlDataType_t type) {
  // Without a default case, so that the compiler asks for the size of a new type.
  switch (type) {
  case occlUint8:
  case occlInt8:
  case occlFloat8E4m3:
  case occlFloat8E5m2:
    return 1;
  case occlFloat16:
  case occlBfloat16:
    return 2;
  case occlInt32:
  case occlUint32:
  case occlFloat32:
    return 4;
  case occlInt64:
  case occlUint64:
  case occlFloat64:
    break;
  }
  return 8;
}

Outcome RedOps::create(const void *scalar, ncclDataType_t type, ncclScalarResidence_t residence,
                       ncclRedOp_t &op) {
  occlDataType_t known;
  if (!typeOf(type, known))
    return unknownType(type);
  if (!scalar)
    return invalidArgument("scalar must not be NULL");
  // Where the scalar is in host memory it is read now, since the program may change it after the
  // call; one on the device is read when the collective runs, in the stream's order.
  PreMulSum sum{type, {}, nullptr};
  if (residence == ncclScalarHostImmediate)
    std::memcpy(sum.scalar.data(), scalar, sizeOf(known));
  else if (residence == ncclScalarDevice)
    sum.deviceScalar = scalar;
  else
    return invalidArgument("residence " + std::to_string(residence) + " is unknown");
  // Numbers behind the built-in ones, never given twice, so that a destroyed operation is
  // recognised.
  std::lock_guard lock(mutex);
  const int number = nextOp++;
  made.emplace(number, sum);
  op = static_cast<ncclRedOp_t>(number);
  return {};
}

Outcome RedOps::destroy(ncclRedOp_t op) {
  if (op < ncclNumOps)
    return invalidArgument("operation " + std::to_string(op) + " is built in");
  std::lock_guard lock(mutex);
  if (made.erase(op) == 0)
    return invalidArgument("operation " + std::to_string(op) + " is none of this communicator");
  return {};
}

Outcome RedOps::apply(ncclRedOp_t op, ncclDataType_t type, Operation &operation) const {
  // The built-in ones have the same order in both interfaces, by a table.
  if (static_cast<unsigned>(op) < ncclNumOps) {
    operation.call.op = kOps[op];
    return {};
  }
  std::lock_guard lock(mutex);
  auto found = made.find(op);
  if (found == made.end())
    return invalidArgument("operation " + std::to_string(op) +
                           " is unknown, or of another communicator, or was destroyed");
  // The scalar has the type's layout; with another type it would be read as something else.
  if (found->second.type != type)
    return invalidArgument("operation " + std::to_string(op) + " was made for data type " +
                           std::to_string(found->second.type) + ", not " + std::to_string(type));
  // A sum of inputs that are multiplied first: the scalar travels with the call, as its operation
  // may be destroyed while the call waits.
  operation.call.op = occlSum;
  operation.hasScalar = true;
  operation.scalar = found->second.scalar;
  operation.deviceScalar = found->second.deviceScalar;
  return {};
}

} // namespace occl::nccl

using namespace occl::nccl;

ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t *op, void *scalar, ncclDataType_t type,
                                      ncclScalarResidence_t residence, ncclComm_t comm) {
  return withComm("ncclRedOpCreatePreMulSum", comm, [&](Comm &of) {
    return op ? of.redOps.create(scalar, type, residence, *op)
              : invalidArgument("op must not be NULL");
  });
}
OCCL_NCCL_SECOND_NAME(ncclRedOpCreatePreMulSum);

ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm) {
  return withComm("ncclRedOpDestroy", comm, [&](Comm &of) { return of.redOps.destroy(op); });
}
OCCL_NCCL_SECOND_NAME(ncclRedOpDestroy);
