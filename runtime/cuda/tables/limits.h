// How large things may be on a device.
#pragma once

#include <cstdint>

namespace occl::cuda {

inline constexpr uint32_t kMaxRanks = 8;
/// Of a CUDA thread block that interprets.
inline constexpr uint32_t kThreads = 512;
/// Shared memory of such a block for its image and words.
inline constexpr uint32_t kTableBytes = 36 << 10;
/// So much, weighted by CudaTarget::foldsAlone(), or less the first warp folds alone.
inline constexpr uint64_t kAloneBytes = 2048;
/// Bytes of the widest accesses of a fold.
inline constexpr uint32_t kPlaceAlignment = 16;
/// Of several instructions that are one step.
inline constexpr uint32_t kMaxStepOperands = 64;

} // namespace occl::cuda
