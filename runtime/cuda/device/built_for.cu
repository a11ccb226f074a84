#include "runtime/cuda/device/built_for.h"

#include <array>

namespace occl::cuda {

namespace {

/// nvcc says 900 for 9.0.
template <uint32_t... kArchitectures>
constexpr std::array<uint32_t, sizeof...(kArchitectures)> kCapabilities = {
    (kArchitectures / 10)...};

} // namespace

std::span<const uint32_t> builtFor() { return kCapabilities<__CUDA_ARCH_LIST__>; }

} // namespace occl::cuda
