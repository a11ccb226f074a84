// Who waits for whom, asked of all ranks.
#pragma once

#include "runtime/control/fabric.h"
#include "runtime/observe/report/wait_report.h"

#include <functional>
#include <vector>

namespace occl::daemon {

/// What each rank of the fabric says, by rank. publishOwn, called once all have been asked, is for
/// what this rank has to say itself. Ranks that do not answer get up to 50 ms, or 200 ms where some
/// are on other machines, together. Any thread.
std::vector<insight::RankReport> askRanks(const Fabric &fabric,
                                          const std::function<void()> &publishOwn);

} // namespace occl::daemon
