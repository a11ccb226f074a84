// Correctness of the interpreter on devices, against the conformance suite's reference.
#pragma once

#include "bench/gpu/kernels/device_group.h"
#include "runtime/base/status.h"

#include <string>

namespace occl::bench {

/// Every algorithm, number of blocks and placement at awkward counts, all types and operations,
/// aligned and not, one and several tiles and slices; every output byte on every rank. Then a plan
/// that deadlocks, which must be reported. Quick: a few
/// of them, for the sanitizers. Prints a line for each group of checks.
Status checkAll(DeviceGroup &group, const std::string &planDirectory, bool quick);

} // namespace occl::bench
