// Kernels of a program that makes and uses partitions by bulk copies and through the read-only
// cache (docs/decisions/gpu/partitioned.md).
#pragma once

#include "runtime/api/occl_partitioned_device.h"
#include "test/gpu/partitioned/part_users.h"

#include <cstdint>
#include <string>

namespace occl::gpu_test {

/// Of a partition: what one thread block copies, each thread a piece of its own.
inline constexpr uint64_t kBulkBytes = 8192;

// Into a stream (a cudaStream_t) of the current device; a cudaError_t. Compute capability 9.0.

/// One thread block: each of its threads stores its piece of each partition by a bulk copy of its
/// own, and the block marks it; then it waits for each partition of the other side, and reads it by
/// one bulk copy. *wrong grows by the words that differ, or by 2^40 for each that has not come.
int launchBulkExchange(void *stream, occlPartDevice_t send, Field out, uint64_t outKey,
                       occlPartDevice_t receive, Field in, uint64_t inKey, uint64_t nanoseconds,
                       uint64_t *wrong);
/// The same of all words, read through the read-only cache.
int launchCheckReadOnly(void *stream, Field in, uint64_t key, uint64_t *wrong);
/// Why a grid of so many blocks, all of which wait without bound for partitions of the request, may
/// not be launched on the current device; "" if it may.
std::string checkWaiting(occlPart_t part, uint32_t blocks);
/// All of them, before anything waits.
int loadMemoryUsers();

} // namespace occl::gpu_test
