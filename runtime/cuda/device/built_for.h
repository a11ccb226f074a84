// Which devices the kernels were compiled for.
#pragma once

#include <cstdint>
#include <span>

namespace occl::cuda {

/// Compute capabilities, 90 for 9.0, ascending, for which there is machine code.
std::span<const uint32_t> builtFor();
/// That for which there is PTX; 0: there is none.
uint32_t ptxFor();

} // namespace occl::cuda
