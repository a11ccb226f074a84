// Ranks in texts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace occl::bootstrap {

/// "rank 3" or "ranks 3, 5".
std::string listRanks(const std::vector<uint32_t> &ranks);

} // namespace occl::bootstrap
