// Ranks as errors name them.
#include "runtime/control/bootstrap/list_ranks.h"

namespace occl::bootstrap {

std::string listRanks(const std::vector<uint32_t> &ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size(); ++i)
    text += (i ? ", " : "") + std::to_string(ranks[i]);
  return text;
}

} // namespace occl::bootstrap
