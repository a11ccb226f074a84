// Which devices the kernels were compiled for.
#pragma once

#include <cstdint>
#include <span>

namespace occl::cuda {

/// Compute capabilities, 90 for 9.0. A device runs what was compiled for its major number and a
/// minor one that is not above its own.
std::span<const uint32_t> builtFor();

} // namespace occl::cuda
