// Fabrics of two ranks that are threads, for tests that explore them.
#pragma once

#include "runtime/control/fabric.h"
#include "runtime/control/testing/thread_fabrics.h"
#include "test/explore/explorer/explore.h"

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace occl::explore {

constexpr uint32_t kRanks = 2;

inline std::vector<std::unique_ptr<daemon::Fabric>> makeFabrics() {
  auto made = daemon::testing::makeThreadFabrics(kRanks, 4096);
  require(made.ok(), "fabrics");
  return std::move(made->fabrics);
}

} // namespace occl::explore
