// Operations, and pre-multiplied sums, which a communicator has of its own.
#pragma once

#include "nccl/calls/operation.h"

#include <map>
#include <mutex>

namespace occl::nccl {

/// Thread safety: any.
class RedOps {
public:
  /// Reads the scalar if it is the host's; of a device's it keeps the address.
  Outcome create(const void *scalar, ncclDataType_t type, ncclScalarResidence_t residence,
                 ncclRedOp_t &op);
  Outcome destroy(ncclRedOp_t op);
  /// Fills in what `operation` reduces with. It keeps nothing of this table.
  Outcome apply(ncclRedOp_t op, ncclDataType_t type, Operation &operation) const;

private:
  struct PreMulSum {
    ncclDataType_t type;
    std::array<unsigned char, 8> scalar;
    const void *deviceScalar;
  };

  mutable std::mutex mutex;
  std::map<int, PreMulSum> made;
};

} // namespace occl::nccl
