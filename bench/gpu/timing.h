// Times as the benches take them.
#pragma once

#include <algorithm>
#include <chrono>
#include <vector>

namespace occl::bench {

inline double microsecondsSince(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin)
      .count();
}

/// Of one or more; of an even number the upper one of the two in the middle.
inline double medianOf(std::vector<double> all) {
  std::ranges::sort(all);
  return all[all.size() / 2];
}

} // namespace occl::bench
