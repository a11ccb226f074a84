// What a group of ranks may be called, and how large it may be.
#pragma once

#include "runtime/base/status.h"

#include <cstdint>
#include <string_view>

namespace occl::bootstrap {

/// InvalidArgument unless `name` is 1 to 64 of [A-Za-z0-9_-].
Status checkName(std::string_view name);

/// InvalidArgument unless rank < numRanks <= kMaxRanks.
Status checkGroup(uint32_t numRanks, uint32_t rank);

} // namespace occl::bootstrap
