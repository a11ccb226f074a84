// Where a thread block of a device stood when it gave up, in words.
#pragma once

#include "runtime/base/status.h"
#include "runtime/cuda/tables/host_words.h"
#include "runtime/invocation/collective.h"

#include <cstdint>
#include <string>

namespace occl::cuda {

/// What its communicator fails with.
StatusCode codeOf(const GivingUp &where);

/// "rank 0 gave up in call 3, 'ring' of 1024 elements of type float32, sum: thread block 0,
/// instruction 1 (recv) at ring.coll:4:1, tile 0, waits for data from rank 2".
std::string describeGivingUp(const GivingUp &where, const daemon::CollectiveSpec &spec,
                             uint32_t rank);
/// "'ring' of 1024 elements of type float32, sum".
std::string describeCall(const daemon::CollectiveSpec &spec);

} // namespace occl::cuda
