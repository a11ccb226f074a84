// Pages of memory, where the layout must not depend on the kernel that runs.
#pragma once

#include <cstdint>

namespace occl {

/// No kernel of this architecture has larger pages, and each page size is a divisor: what is mapped
/// or protected apart begins at multiples of this.
#ifdef __x86_64__
inline constexpr uint64_t kLargestPage = 4 << 10;
#else
inline constexpr uint64_t kLargestPage = 64 << 10;
#endif

} // namespace occl
