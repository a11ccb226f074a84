// Fabrics of two ranks that are threads, for tests that explore them.
#pragma once

#include "runtime/control/fabric.h"
#include "runtime/control/records/segment.h"
#include "runtime/control/shm/shared_bell.h"
#include "test/explore/explorer/explore.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace occl::explore {

constexpr uint32_t kRanks = 2;

inline std::vector<std::unique_ptr<daemon::Fabric>> makeFabrics() {
  std::vector<std::shared_ptr<bootstrap::SharedBell>> bells;
  for (uint32_t r = 0; r < kRanks; ++r)
    bells.push_back(*bootstrap::SharedBell::makePrivate());
  auto groups = bootstrap::formThreadGroup(bells, transport::Segment::bytesFor(4096));
  std::vector<std::unique_ptr<daemon::Fabric>> fabrics;
  for (auto &group : *groups) {
    fabrics.push_back(std::make_unique<daemon::Fabric>(std::move(group)));
    require(fabrics.back()->format(1).ok(), "format");
  }
  for (auto &fabric : fabrics)
    require(fabric->connect().ok(), "connect");
  return fabrics;
}

} // namespace occl::explore
