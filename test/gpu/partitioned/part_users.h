// Kernels of a program that has partitioned requests, and the data that they make and check.
#pragma once

#include "runtime/api/occl_partitioned_device.h"

#include <cstdint>

namespace occl::gpu_test {

/// Who marks together.
enum class Marker { Thread, Warp, Block };

/// Partitions of so many bytes, one behind the other.
struct Field {
  char *data = nullptr;
  uint64_t partitions = 0, bytes = 0;
};

// Into a stream (a cudaStream_t) of the current device; a cudaError_t.

/// Each group of threads makes its partitions, a function of the key, and marks each when it is
/// made; the last ones first.
int launchProduce(void *stream, occlPartDevice_t part, Field field, uint64_t key, Marker marker);
/// The same without marks.
int launchFill(void *stream, Field field, uint64_t key);
/// Each thread block waits for its partitions, for so long at most, and checks each when it has
/// arrived: *wrong grows by the bytes that differ, or by 2^40 for each that has not come.
int launchConsume(void *stream, occlPartDevice_t part, Field field, uint64_t key,
                  uint64_t nanoseconds, uint64_t *wrong);
/// The same of all, at once.
int launchCheck(void *stream, Field field, uint64_t key, uint64_t *wrong);
/// One thread block marks all partitions of the one, then waits for those of the other, then for
/// the send.
int launchExchange(void *stream, occlPartDevice_t send, Field out, uint64_t outKey,
                   occlPartDevice_t receive, Field in, uint64_t inKey, uint64_t nanoseconds,
                   uint64_t *wrong);
enum class Misused { OutOfRange, Twice, TwiceAfterAll, WithoutEpoch, Receive };
/// One block, of which thread block `block` of the grid does it.
int launchMisuse(void *stream, occlPartDevice_t part, Misused how, uint32_t block);
/// All of them, before anything waits.
int loadPartUsers();

} // namespace occl::gpu_test
