// What `occl doctor` asks of the machine and its system.
#pragma once

#include "tools/occl/report.h"

namespace occl::driver {

/// Processors, shared memory, descriptors, access to other processes, RDMA ports, network
/// interfaces, an all-reduce of two processes. To be called without other threads.
void checkHost(Report &report);

} // namespace occl::driver
