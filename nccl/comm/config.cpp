#include "nccl/comm/config.h"

#include <algorithm>
#include <cstring>

namespace occl::nccl {

namespace {

struct Range {
  const char *name;
  int ncclConfig_t::*field;
  unsigned since; // the version that has brought it: callers of earlier ones have not set it
  int least, most;
};

// The rest is hints to NCCL's own algorithms and networks, with no wrong values but negative ones.
constexpr Range kRanges[] = {
    {"blocking", &ncclConfig_t::blocking, 21400, 0, 1},
    {"cgaClusterSize", &ncclConfig_t::cgaClusterSize, 21700, 0, 8},
    {"minCTAs", &ncclConfig_t::minCTAs, 21700, 1, INT_MAX},
    {"maxCTAs", &ncclConfig_t::maxCTAs, 21700, 1, INT_MAX},
    {"splitShare", &ncclConfig_t::splitShare, 21800, 0, 1},
    {"shrinkShare", &ncclConfig_t::shrinkShare, 22700, 0, 1},
    {"collnetEnable", &ncclConfig_t::collnetEnable, 22700, 0, 1},
    {"CTAPolicy", &ncclConfig_t::CTAPolicy, 22700, 0, 3},
    {"nvlsCTAs", &ncclConfig_t::nvlsCTAs, 22700, 1, INT_MAX},
};

} // namespace

Outcome readConfig(const ncclConfig_t *given, Config &config) {
  if (!given)
    return {};
  // The first fields are in every version, up to `version`.
  constexpr size_t kLeast = offsetof(ncclConfig_t, blocking);
  if (given->size < kLeast || given->magic != NCCL_CONFIG_MAGIC)
    return invalidArgument("config was not initialized with NCCL_CONFIG_INITIALIZER");
  ncclConfig_t known = kNcclConfigInitializer;
  std::memcpy(&known, given, std::min(given->size, sizeof(known)));
  for (const Range &range : kRanges) {
    int &value = known.*range.field;
    if (known.version < range.since)
      value = NCCL_CONFIG_UNDEF_INT;
    if (value == NCCL_CONFIG_UNDEF_INT)
      continue;
    if (value < range.least || value > range.most)
      return invalidArgument(
          "config->" + std::string(range.name) + " is " + std::to_string(value) + ", must be " +
          std::to_string(range.least) +
          (range.most == INT_MAX ? " or more" : " to " + std::to_string(range.most)));
  }
  if (known.minCTAs != NCCL_CONFIG_UNDEF_INT && known.maxCTAs != NCCL_CONFIG_UNDEF_INT &&
      known.minCTAs > known.maxCTAs)
    return invalidArgument("config->minCTAs is more than config->maxCTAs");
  if (known.blocking != NCCL_CONFIG_UNDEF_INT)
    config.isBlocking = known.blocking != 0;
  constexpr unsigned kSinceNames[] = {21700, 22600};
  config.netName = known.version >= kSinceNames[0] && known.netName ? known.netName : "";
  config.commName = known.version >= kSinceNames[1] && known.commName ? known.commName : "";
  known.netName = known.commName = nullptr;
  config.values = known;
  return {};
}

} // namespace occl::nccl
