#include "runtime/cuda/device/built_for.h"

#include <array>

namespace occl::cuda {

namespace {

/// nvcc says 900 for 9.0.
template <uint32_t... kArchitectures>
constexpr std::array<uint32_t, sizeof...(kArchitectures)> kCapabilities = {
    (kArchitectures / 10)...};

} // namespace

#ifndef OCCL_PTX_FOR
#define OCCL_PTX_FOR 0
#endif

std::span<const uint32_t> builtFor() { return kCapabilities<__CUDA_ARCH_LIST__>; }

uint32_t ptxFor() { return OCCL_PTX_FOR; }

} // namespace occl::cuda
