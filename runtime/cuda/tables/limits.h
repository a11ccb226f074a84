// How large things may be on a device.
#pragma once

#include <cstdint>

namespace occl::cuda {

inline constexpr uint32_t kMaxRanks = 8;
/// Of a CUDA thread block that interprets.
inline constexpr uint32_t kThreads = 512;
/// Shared memory of such a block for its image.
inline constexpr uint32_t kTableBytes = 32 << 10;
/// So much, weighted by CudaTarget::foldsAlone(), or less the first warp folds alone.
inline constexpr uint64_t kAloneBytes = 2048;
/// Bytes of the widest accesses of a fold.
inline constexpr uint32_t kPlaceAlignment = 16;
/// As CudaTeam::kMaxOperands.
inline constexpr uint32_t kMaxBlockOperands = 64;

} // namespace occl::cuda
