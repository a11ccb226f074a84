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
/// The same of one partition.
int launchFillOne(void *stream, Field field, uint64_t p, uint64_t key);
/// Each thread block waits for its partitions, for so long at most, and checks each when it has
/// arrived: *wrong grows by the bytes that differ, or by 2^40 for each that has not come.
int launchConsume(void *stream, occlPartDevice_t part, Field field, uint64_t key,
                  uint64_t nanoseconds, uint64_t *wrong);
/// The same of all, at once.
int launchCheck(void *stream, Field field, uint64_t key, uint64_t *wrong);
/// A rank's buffer of a collective: words in partitions of ceil(words / partitions).
struct Words {
  uint32_t *data = nullptr;
  uint64_t words = 0, partitions = 0;

  uint64_t perPartition() const { return words == 0 ? 0 : (words - 1) / partitions + 1; }
};
/// The value of word i of a rank's input.
constexpr uint32_t wordOf(uint64_t key, uint64_t i) {
  return static_cast<uint32_t>(key * 2654435761u + i * 40503u + (i >> 7) * 7919u);
}
/// Each thread block makes partitions first to last, the last not included, and marks each when it
/// is made, in an order that `stride` gives, which has no divisor with their number.
int launchProduceWords(void *stream, occlPartDevice_t part, Words field, uint64_t key,
                       uint64_t first, uint64_t last, uint64_t stride);
/// The same of all words, without marks.
int launchMakeWords(void *stream, Words field, uint64_t key);
/// Each thread block waits for partitions first to last, the last not included, for so long at
/// most, and copies each to `seen` when it has arrived; *missing counts those that have not.
int launchTakeWords(void *stream, occlPartDevice_t part, Words field, uint32_t *seen,
                    uint64_t first, uint64_t last, uint64_t nanoseconds, uint64_t *missing);
/// One thread block marks all partitions of the one, then waits for those of the other, then for
/// the send.
int launchExchange(void *stream, occlPartDevice_t send, Field out, uint64_t outKey,
                   occlPartDevice_t receive, Field in, uint64_t inKey, uint64_t nanoseconds,
                   uint64_t *wrong);
/// One thread block marks all partitions of two sends, with data of one key, and waits for the
/// second one alone.
int launchSendBoth(void *stream, occlPartDevice_t first, Field ofFirst, occlPartDevice_t second,
                   Field ofSecond, uint64_t key, uint64_t nanoseconds, uint64_t *wrong);
enum class Misused { OutOfRange, Twice, TwiceAfterAll, WithoutEpoch, Receive };
/// One block, of which thread block `block` of the grid does it.
int launchMisuse(void *stream, occlPartDevice_t part, Misused how, uint32_t block);
/// Thread blocks that leave each multiprocessor room for 256 threads, until *mayEnd; *begun counts
/// them, *blocks is their number. Both words are pinned. The device has 2,048 threads a
/// multiprocessor.
int launchCrowd(void *stream, uint32_t *begun, const uint32_t *mayEnd, uint32_t *blocks);
/// All of them, before anything waits.
int loadPartUsers();

} // namespace occl::gpu_test
