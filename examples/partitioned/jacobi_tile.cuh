// Jacobi's iteration on a tile of a grid, one tile a thread block, many iterations in one kernel.
// How rows come from and go to other ranks is a parameter: see PartitionedHalo in jacobi.cu.
#pragma once

#include <cuda/atomic>

#include <cstdint>
#include <type_traits>

namespace occl::examples {

inline constexpr uint32_t kThreads = 512, kBlocksPerMultiprocessor = 1;
/// Of a tile. A thread has four columns at a time.
inline constexpr uint32_t kMostColumns = 4096;

/// This rank's rows of the grid, all n columns of each, and how they are divided into tiles. Around
/// the whole grid there are zeroes, and ones above it.
struct Stripe {
  uint32_t n = 0, rows = 0;
  uint32_t strips = 0, bands = 0; // of columns, of rows; two bands or more
  float *grids[2] = {nullptr, nullptr};
  /// n values each, of what lies above and below if that is no rank's.
  const float *above = nullptr, *below = nullptr;
  uint32_t *done = nullptr; // of each tile: iterations in this kernel
  float *change = nullptr;  // the sum of the squares of what the last iteration changes
};

struct Tile {
  uint32_t strip, band, column, columns, first, last; // rows first to last, the latter not included
};

__device__ inline Tile tileOf(const Stripe &stripe, uint32_t number) {
  const uint32_t strip = number % stripe.strips, band = number / stripe.strips;
  const uint32_t columns = stripe.n / stripe.strips;
  const auto row = [&](uint32_t b) {
    return static_cast<uint32_t>(uint64_t{stripe.rows} * b / stripe.bands);
  };
  return {strip, band, strip * columns, columns, row(band), row(band + 1)};
}

/// What an iteration reads and writes.
struct Rows {
  const float *in;
  float *out;
  uint32_t n, rows;
  const float *above, *below; // of row 0, of the last row

  __device__ const float *at(int row) const {
    return row < 0 ? above : row == static_cast<int>(rows) ? below : in + uint64_t{n} * row;
  }
};

/// What a thread computes: four columns of some rows, from the first one on.
struct Columns {
  const float *in, *below; // `in`: of the next row; of the row behind the last one
  float *out, *alsoTo;     // a single row is also stored there, unless it is null
  uint32_t n;
  int rows; // left
  bool isFirst, isLast;
  float4 up, mid; // of the row before the next one, and of that
  float change;   // the sum of the squares of what is changed

  __device__ __forceinline__ static float4 four(const float *at) {
    return *reinterpret_cast<const float4 *>(at);
  }
  /// The next rows. All that they need is loaded before the first is computed, so that the loads
  /// overlap: nothing here may need more registers than there are.
  template <int kRows> __device__ __forceinline__ void relax() {
    float4 down[kRows];
    float left[kRows], right[kRows];
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const float *line = in + uint64_t{n} * i;
      down[i] = four(i + 1 < kRows || rows > kRows ? line + n : below);
      left[i] = isFirst ? 0.f : line[-1];
      right[i] = isLast ? 0.f : line[4];
    }
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const float4 now = {0.25f * ((up.x + down[i].x) + (left[i] + mid.y)),
                          0.25f * ((up.y + down[i].y) + (mid.x + mid.z)),
                          0.25f * ((up.z + down[i].z) + (mid.y + mid.w)),
                          0.25f * ((up.w + down[i].w) + (mid.z + right[i]))};
      *reinterpret_cast<float4 *>(out + uint64_t{n} * i) = now;
      if (kRows == 1 && alsoTo)
        *reinterpret_cast<float4 *>(alsoTo) = now;
      const float x = now.x - mid.x, y = now.y - mid.y, z = now.z - mid.z, w = now.w - mid.w;
      change += (x * x + y * y) + (z * z + w * w);
      up = mid;
      mid = down[i];
    }
    in += uint64_t{n} * kRows;
    out += uint64_t{n} * kRows;
    rows -= kRows;
  }
};

/// Rows first to last (not included) in four columns from c on, also stored to alsoTo, a row, if it
/// is given; then there is one row. The sum of the squares of what is changed. Out of line, so that
/// its registers are its own: what kernels keep for the exchange does not lie on the stack here.
static __device__ __noinline__ float relaxColumns(Columns columns) {
  columns.change = 0;
  while (columns.rows >= 6)
    columns.relax<6>();
  if (columns.rows >= 3)
    columns.relax<3>();
  if (columns.rows == 2)
    columns.relax<2>();
  else if (columns.rows == 1)
    columns.relax<1>();
  return columns.change;
}

/// New values of rows first to last (not included) of the tile, by kThreads threads; all call:
/// narrow tiles have several groups of rows. Also stored to alsoTo, a row, if it is given; then
/// there is one row. Each thread gets the sum of the squares of what it changed.
__device__ inline float relax(const Rows &rows, const Tile &tile, int first, int last,
                              float *alsoTo) {
  const uint32_t lanes = min(tile.columns / 4, kThreads), groups = kThreads / lanes;
  const auto group = static_cast<int>(threadIdx.x / lanes);
  const int each = (last - first + static_cast<int>(groups) - 1) / static_cast<int>(groups);
  const int begin = first + group * each, end = min(begin + each, last);
  if (group >= static_cast<int>(groups) || begin >= end)
    return 0;
  float change = 0;
  const float *above = rows.at(begin - 1), *below = rows.at(end);
  const uint64_t at = uint64_t{rows.n} * begin;
  for (uint32_t i = threadIdx.x % lanes * 4; i < tile.columns; i += lanes * 4) {
    const uint32_t c = tile.column + i;
    Columns mine = {
        rows.in + at + c, below + c, rows.out + at + c, alsoTo ? alsoTo + c : nullptr, rows.n,
        end - begin,      c == 0,    c + 4 == rows.n};
    mine.up = Columns::four(above + c);
    mine.mid = Columns::four(mine.in);
    change += relaxColumns(mine);
  }
  return change;
}

/// The block's sum, to *to.
__device__ inline void addUp(float mine, float *to) {
  __shared__ float sum;
  if (threadIdx.x == 0)
    sum = 0;
  __syncthreads();
  for (int away = 16; away > 0; away /= 2)
    mine += __shfl_xor_sync(~0u, mine, away);
  if (threadIdx.x % 32 == 0)
    atomicAdd(&sum, mine);
  __syncthreads();
  if (threadIdx.x == 0)
    atomicAdd(to, sum);
}

// --- Tiles of one device wait for those beside them: all blocks are there at a time. ---

inline constexpr uint32_t kGaveUp = ~0u;

__device__ inline void setDone(const Stripe &stripe, uint32_t iterations) {
  __syncthreads();
  if (threadIdx.x == 0)
    cuda::atomic_ref<uint32_t, cuda::thread_scope_device>(stripe.done[blockIdx.x])
        .store(iterations, cuda::memory_order_release);
}

/// Whether the tiles beside this one have done so many iterations; ten seconds or so at most.
__device__ inline bool waitForTiles(const Stripe &stripe, const Tile &tile, uint32_t iterations) {
  constexpr long long kCycles = 20'000'000'000;
  bool isRight = true;
  if (threadIdx.x < 4) {
    const bool isVertical = threadIdx.x % 2 == 0, isBefore = threadIdx.x < 2;
    const uint32_t at = isVertical ? tile.band : tile.strip;
    const uint32_t number = isVertical ? stripe.bands : stripe.strips;
    const uint32_t step = isVertical ? stripe.strips : 1;
    if (isBefore ? at > 0 : at + 1 < number) {
      const cuda::atomic_ref<uint32_t, cuda::thread_scope_device> theirs(
          stripe.done[isBefore ? blockIdx.x - step : blockIdx.x + step]);
      const long long begin = clock64();
      uint32_t done = theirs.load(cuda::memory_order_acquire);
      while (done < iterations && clock64() - begin < kCycles)
        done = theirs.load(cuda::memory_order_acquire);
      isRight = done >= iterations && done != kGaveUp;
    }
  }
  return __syncthreads_and(isRight) != 0;
}

/// The side of a tile beyond which another tile of this rank lies, or nothing.
struct NoHalo {
  static constexpr bool kIsThere = false;
};

/// So many iterations of a tile. Halo: of a tile at the edge to another rank's rows:
/// - isAbove: which edge;
/// - outgoing(k): where the edge's row as it is before iteration k is stored, for the other rank;
/// - send(k): it is stored; all threads;
/// - receive(k): the other rank's row, once it is there; null if it does not come. All threads.
template <class Halo>
__device__ void iterate(const Stripe &stripe, const Tile &tile, uint32_t iterations, Halo &&halo) {
  Rows rows = {stripe.grids[0], stripe.grids[1], stripe.n, stripe.rows, stripe.above, stripe.below};
  if constexpr (std::remove_reference_t<Halo>::kIsThere) {
    const float *from = rows.at(static_cast<int>(halo.isAbove ? tile.first : tile.last - 1));
    for (uint32_t i = tile.column + threadIdx.x; i < tile.column + tile.columns; i += blockDim.x)
      halo.outgoing(0)[i] = from[i];
    halo.send(0);
  }
  for (uint32_t k = 0; k < iterations; ++k) {
    rows.in = stripe.grids[k % 2];
    rows.out = stripe.grids[1 - k % 2];
    auto first = static_cast<int>(tile.first), last = static_cast<int>(tile.last);
    float change = 0;
    if (!waitForTiles(stripe, tile, k))
      return setDone(stripe, kGaveUp);
    if constexpr (std::remove_reference_t<Halo>::kIsThere) {
      const float *theirs = halo.receive(k);
      if (theirs == nullptr)
        return setDone(stripe, kGaveUp);
      (halo.isAbove ? rows.above : rows.below) = theirs;
      // The row that the other rank waits for first: it travels while the rest is computed.
      const int edge = halo.isAbove ? first++ : --last;
      const bool isLast = k + 1 == iterations;
      change = relax(rows, tile, edge, edge + 1, isLast ? nullptr : halo.outgoing(k + 1));
      if (!isLast)
        halo.send(k + 1);
    }
    change += relax(rows, tile, first, last, nullptr);
    if (k + 1 == iterations)
      addUp(change, stripe.change);
    setDone(stripe, k + 1);
  }
}

} // namespace occl::examples
