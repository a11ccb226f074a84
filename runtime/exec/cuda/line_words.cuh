// A device's accesses to lines of protocols LL and LL128.
//
// Memory order, of LL: data and flag are one word of 64 bits, stored and loaded as an element of a
// vector of two. The PTX memory model treats a vector access as one access for each element, and
// such a word does not come apart. So it needs no acquire, or a release, which would wait until all
// stores have arrived.
#pragma once

#include <cstdint>

namespace occl::interpreter::cuda {

/// 16 bytes of lines, as two words of 64 bits.
__device__ __forceinline__ uint4 loadOfLine(const char *address) {
  uint64_t low, high;
  asm volatile("ld.volatile.global.v2.u64 {%0, %1}, [%2];"
               : "=l"(low), "=l"(high)
               : "l"(address)
               : "memory");
  return {static_cast<uint32_t>(low), static_cast<uint32_t>(low >> 32), static_cast<uint32_t>(high),
          static_cast<uint32_t>(high >> 32)};
}
__device__ __forceinline__ void storeOfLine(char *address, const uint4 &raw) {
  asm volatile("st.volatile.global.v2.u64 [%0], {%1, %2};" ::"l"(address),
               "l"(raw.x | static_cast<uint64_t>(raw.y) << 32),
               "l"(raw.z | static_cast<uint64_t>(raw.w) << 32)
               : "memory");
}

} // namespace occl::interpreter::cuda
