// Inputs of collectives that are made where they are needed, and outputs that are compared there,
// every byte: as the next work of streams, so that nothing waits for the host.
#pragma once

#include <cstdint>

namespace occl::gpu_test {

/// Elements of 4 bytes: any of 32 bits, or floats that are whole numbers below 2^16, of which sums
/// over eight ranks are exact.
enum class Elements : uint32_t { Words, Floats };

/// What an output must be.
enum class Expected : uint32_t {
  Sum,        // element i of all ranks
  Gathered,   // of each rank its elements, in the order of ranks
  Transposed, // of each rank those that it has for this one
};

/// The input of rank r in an invocation is a function of a key, r and the position alone.
struct DataOf {
  uint64_t key = 0;
  Elements elements = Elements::Words;
};

/// Differences found on a device; its memory.
struct Differences {
  uint64_t number;
  uint64_t position; // of the first one that was found; elements
  uint32_t found, expected;
};

/// Loads what follows on the current device: CUDA would at the first launch, and wait for kernels
/// that run. A cudaError_t.
int loadDataKernels();
/// Work for a stream of the current device (a cudaStream_t); a cudaError_t.
int fillInput(void *stream, void *input, uint64_t count, const DataOf &data, uint32_t rank);
/// count: elements of the output, of a part for Gathered and Transposed.
int compareOutput(void *stream, const void *output, uint64_t count, const DataOf &data,
                  Expected expected, uint32_t rank, uint32_t numRanks, Differences *differences);
/// Keeps the stream busy for so long.
int spin(void *stream, uint64_t nanoseconds);

/// A value for each set of numbers, well mixed.
uint64_t mixed(uint64_t a, uint64_t b, uint64_t c = 0);

} // namespace occl::gpu_test
