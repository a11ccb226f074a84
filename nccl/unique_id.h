// The bytes by which ranks find each other.
#pragma once

#include "nccl/errors.h"

#include <string>

namespace occl::nccl {

/// Bytes 0-3 "OCCL", 4-7 version of this layout (1, little endian), 8-23 boot id of the machine,
/// 24-39 random, or of NCCL_COMM_ID and the number of the call in this process; the rest is 0.
/// SystemError if the system gives no random bytes.
Outcome makeUniqueId(ncclUniqueId &id);

/// For occlCommInitRank. InvalidArgument if it is not such an id, InvalidUsage if of another
/// machine.
Outcome nameOf(const ncclUniqueId &id, std::string &name);

} // namespace occl::nccl
