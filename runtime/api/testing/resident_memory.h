// How much memory this process has, as Linux counts it.
#pragma once

#include <cstdint>

namespace occl::communicator::testing {

/// VmRSS of /proc/self/status in KiB, pages included that its threads share as ranks; 0 where there
/// is no such file.
uint64_t residentKilobytes();

} // namespace occl::communicator::testing
