// Counters of a rank's collectives in the form of the C interface.
#pragma once

#include "runtime/api/capi/handles.h"
#include "runtime/api/occl_insight.h"
#include "runtime/base/status.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace occl::communicator {

/// InvalidArgument if no such collective is registered. `stats` is all 0, and its size stays so.
Status readStats(occlComm &comm, uint64_t id, occlCollectiveStats_t &stats);

/// Of one thread block, or with OCCL_ALL_BLOCKS of all. InvalidArgument also if there is no such
/// block.
Status readBlockStats(occlComm &comm, uint64_t id, uint32_t block, occlBlockStats_t &stats);

/// All counters as Prometheus reads them; labels as of metricsText.
std::string metricsOf(occlComm &comm, std::string_view labels);

} // namespace occl::communicator
