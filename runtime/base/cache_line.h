// The unit in which memory moves between cores. Words written by different threads lie on different
// lines, or each write of one stalls the readers of the other.
#pragma once

#include <cstdint>

namespace occl {

inline constexpr uint64_t kCacheLine = 64;

constexpr uint64_t alignUp(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

} // namespace occl
