// Mixing of 64-bit words (the finaliser of SplitMix64): every bit of the argument changes half of
// the result's.
#pragma once

#include <cstdint>

namespace occl::support {

constexpr uint64_t mix(uint64_t word) {
  word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9u;
  word = (word ^ word >> 27) * 0x94d049bb133111ebu;
  return word ^ word >> 31;
}

} // namespace occl::support
