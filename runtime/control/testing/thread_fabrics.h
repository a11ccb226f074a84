// Fabrics of ranks that are threads of one process, connected.
#pragma once

#include "runtime/control/bootstrap/bootstrap.h"
#include "runtime/control/fabric.h"
#include "runtime/control/records/segment.h"
#include "runtime/control/shm/shared_bell.h"

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace occl::daemon::testing {

/// By rank.
struct ThreadFabrics {
  std::vector<std::shared_ptr<bootstrap::SharedBell>> bells;
  std::vector<std::unique_ptr<Fabric>> fabrics;
};

/// Of so many ranks, with arenas of so many bytes. What refuses it.
inline StatusOr<ThreadFabrics> makeThreadFabrics(uint32_t numRanks, uint64_t arenaBytes) {
  ThreadFabrics made;
  for (uint32_t r = 0; r < numRanks; ++r) {
    auto bell = bootstrap::SharedBell::makePrivate();
    if (!bell.ok())
      return bell.status();
    made.bells.push_back(std::move(*bell));
  }
  auto groups = bootstrap::formThreadGroup(made.bells, transport::Segment::bytesFor(arenaBytes));
  if (!groups.ok())
    return groups.status();
  for (auto &group : *groups) {
    made.fabrics.push_back(std::make_unique<Fabric>(std::move(group)));
    if (Status formatted = made.fabrics.back()->format(1); !formatted.ok())
      return formatted;
  }
  for (auto &fabric : made.fabrics)
    if (Status connected = fabric->connect(); !connected.ok())
      return connected;
  return made;
}

} // namespace occl::daemon::testing
