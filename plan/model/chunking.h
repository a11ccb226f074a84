// How many elements a chunk has. One formula for compiler, verifier, host and device: a part of
// `count` elements is cut into `chunks` chunks at multiples of a grain, as evenly as the grain
// allows; the last chunks may be short or empty. Which grain (chunking_of.h) never depends on count
// and chunks: so where a chunk begins, there the first of its pieces begins if all are cut further.
#pragma once

#include <cstdint>

#ifdef __CUDACC__
#define OCCL_HOST_DEVICE __host__ __device__
#else
#define OCCL_HOST_DEVICE
#endif

namespace occl::plan {

inline constexpr uint64_t kGrainBytes = 128;

struct Chunking {
  uint64_t count = 0;  // elements of a part
  uint64_t chunks = 1; // of a part
  uint64_t grain = 1;  // elements

  /// First element of chunk k of a part, for k in [0, chunks]; begin(chunks) is count.
  OCCL_HOST_DEVICE constexpr uint64_t begin(uint64_t k) const {
    uint64_t grains = (count + grain - 1) / grain;
    uint64_t full = grains / chunks, rest = grains % chunks;
    uint64_t element = (full * k + rest * k / chunks) * grain;
    return element < count ? element : count;
  }

  /// Elements of chunk k of a part.
  OCCL_HOST_DEVICE constexpr uint64_t size(uint64_t k) const { return begin(k + 1) - begin(k); }

  /// First element of chunk k of a buffer of any number of parts.
  OCCL_HOST_DEVICE constexpr uint64_t beginInBuffer(uint64_t k) const {
    return k / chunks * count + begin(k % chunks);
  }

  /// No chunk has more elements.
  OCCL_HOST_DEVICE constexpr uint64_t maxSize() const {
    uint64_t grains = (count + grain - 1) / grain;
    uint64_t size = (grains + chunks - 1) / chunks * grain;
    return size < count ? size : count;
  }
};

} // namespace occl::plan
