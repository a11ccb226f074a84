// What of each thread has happened before: a time for each, 0 for none.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace occl::explore {

class VectorClock {
public:
  bool isEmpty() const { return times.empty(); }
  uint64_t of(uint32_t thread) const { return thread < times.size() ? times[thread] : 0; }

  void set(uint32_t thread, uint64_t time) {
    if (thread >= times.size())
      times.resize(thread + 1);
    times[thread] = time;
  }

  void join(const VectorClock &other) {
    if (other.times.size() > times.size())
      times.resize(other.times.size());
    for (size_t t = 0; t < other.times.size(); ++t)
      times[t] = std::max(times[t], other.times[t]);
  }

private:
  std::vector<uint64_t> times; // by thread
};

} // namespace occl::explore
