#include "bench/gpu/applications/jacobi_forms.h"

#include "examples/partitioned/check.h"
#include "examples/partitioned/jacobi_tile.cuh"
#include "examples/partitioned/side_stream.h"
#include "runtime/api/occl_collectives.h"
#include "runtime/api/occl_transfer.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <vector>

namespace occl::bench {

using namespace examples;

namespace {

// --- A kernel an iteration. ---

/// Rows first to last, not included, one tile a thread block.
__global__ void __launch_bounds__(kThreads, kBlocksPerMultiprocessor)
    relaxTiles(Rows rows, uint32_t first, uint32_t last, Tiling tiling, float *change) {
  Stripe stripe;
  stripe.n = rows.n;
  stripe.rows = last - first;
  stripe.strips = tiling.strips;
  stripe.bands = tiling.bands;
  const Tile tile = tileOf(stripe, blockIdx.x);
  const float mine = relax(rows, tile, static_cast<int>(first + tile.first),
                           static_cast<int>(first + tile.last), nullptr);
  if (change)
    addUp(mine, change);
}

/// The first and the last row.
__global__ void relaxEdges(Rows rows, uint32_t strips, float *change) {
  Stripe stripe;
  stripe.n = rows.n;
  stripe.strips = strips;
  stripe.bands = 1;
  const Tile tile = tileOf(stripe, blockIdx.x);
  const int row = blockIdx.y == 0 ? 0 : static_cast<int>(rows.rows) - 1;
  const float mine = relax(rows, tile, row, row + 1, nullptr);
  if (change)
    addUp(mine, change);
}

/// Grids with a row more on both sides, for what neighbours send.
class PaddedJacobi : public JacobiForm {
public:
  PaddedJacobi(Rank &rank, const JacobiShape &shape)
      : rank(rank), shape(shape),
        tiling(tilingOf(shape, reinterpret_cast<const void *>(relaxTiles), kThreads)) {
    // Several tiles to a multiprocessor, one after the other, as no tile waits for another one.
    tiling.bands = std::min(4 * tiling.bands, shape.rows());
    const uint64_t padded = shape.elements() + 2 * uint64_t{shape.n};
    for (float *&grid : grids) {
      check(cudaMalloc(&grid, padded * sizeof(float)), "cudaMalloc");
      check(cudaMemset(grid, 0, padded * sizeof(float)), "cudaMemset");
      if (shape.rank > 0)
        continue;
      const std::vector<float> ones(shape.n, 1.f);
      check(cudaMemcpy(grid, ones.data(), shape.n * sizeof(float), cudaMemcpyDefault),
            "cudaMemcpy");
    }
    check(cudaMalloc(&changes, sizeof(float)), "cudaMalloc");
  }
  ~PaddedJacobi() override {
    for (float *memory : {grids[0], grids[1], changes})
      cudaFree(memory);
  }

  float *grid() const override { return grids[0] + shape.n; }
  const float *change() const override { return changes; }
  void enqueue(cudaStream_t stream) override {
    check(cudaMemsetAsync(changes, 0, sizeof(float), stream), "cudaMemsetAsync");
    exchange(grids[0], stream);
    for (uint32_t k = 0; k < shape.iterations; ++k)
      iterate(k, stream);
    reduce(stream);
  }

protected:
  virtual void iterate(uint32_t k, cudaStream_t stream) {
    const Rows rows = rowsOf(k);
    relaxTiles<<<tiling.strips * tiling.bands, kThreads, 0, stream>>>(rows, 0, shape.rows(), tiling,
                                                                      changeOf(k));
    check(cudaGetLastError(), "relaxTiles");
    if (!isLast(k))
      exchange(grids[1 - k % 2], stream);
  }
  /// The rows at the edges, for those of the neighbours.
  virtual void exchange(float *grid, cudaStream_t stream) = 0;
  virtual void reduce(cudaStream_t stream) = 0;

  bool isLast(uint32_t k) const { return k + 1 == shape.iterations; }
  float *changeOf(uint32_t k) const { return isLast(k) ? changes : nullptr; }
  Rows rowsOf(uint32_t k) const {
    const float *in = grids[k % 2] + shape.n;
    return {in,           grids[1 - k % 2] + shape.n, shape.n, shape.rows(),
            in - shape.n, in + shape.elements()};
  }
  /// one(rank, its row here, where that rank's goes)
  template <class One> void forNeighbours(float *grid, const One &one) const {
    float *first = grid + shape.n, *last = grid + shape.elements();
    if (shape.rank > 0)
      one(shape.rank - 1, first, grid);
    if (shape.rank + 1 < shape.numRanks)
      one(shape.rank + 1, last, last + shape.n);
  }

  Rank &rank;
  const JacobiShape shape;
  Tiling tiling;
  float *grids[2] = {nullptr, nullptr}, *changes = nullptr;
};

class NcclJacobi : public PaddedJacobi {
public:
  using PaddedJacobi::PaddedJacobi;

protected:
  void exchange(float *grid, cudaStream_t stream) override {
    rank.nccl->group(true);
    forNeighbours(grid, [&](uint32_t other, float *mine, float *theirs) {
      rank.nccl->exchange(mine, other, theirs, other, shape.n * sizeof(float), stream);
    });
    rank.nccl->group(false);
  }
  void reduce(cudaStream_t stream) override {
    rank.nccl->enqueue(Kind::AllReduce, changes, changes, 1, stream);
  }
};

class OverlappedJacobi : public NcclJacobi {
public:
  using NcclJacobi::NcclJacobi;

protected:
  void iterate(uint32_t k, cudaStream_t stream) override {
    const Rows rows = rowsOf(k);
    const uint32_t inside = shape.rows() - 2;
    beside.follow(stream);
    relaxEdges<<<dim3(tiling.strips, 2), kThreads, 0, beside.stream>>>(rows, tiling.strips,
                                                                       changeOf(k));
    check(cudaGetLastError(), "relaxEdges");
    if (!isLast(k))
      exchange(grids[1 - k % 2], beside.stream);
    const Tiling inner = {tiling.strips, std::min(tiling.bands, inside)};
    relaxTiles<<<inner.strips * inner.bands, kThreads, 0, stream>>>(rows, 1, shape.rows() - 1,
                                                                    inner, changeOf(k));
    check(cudaGetLastError(), "relaxTiles");
    beside.precede(stream);
  }

private:
  examples::SideStream beside;
};

class SynchronisedJacobi : public PaddedJacobi {
public:
  using PaddedJacobi::PaddedJacobi;

protected:
  void exchange(float *grid, cudaStream_t stream) override {
    check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    check(occlGroupStart(), "occlGroupStart");
    forNeighbours(grid, [&](uint32_t other, float *mine, float *theirs) {
      check(occlSend(mine, shape.n, occlFloat32, other, rank.comm, stream), "occlSend");
      check(occlRecv(theirs, shape.n, occlFloat32, other, rank.comm, stream), "occlRecv");
    });
    check(occlGroupEnd(), "occlGroupEnd");
    check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  }
  void reduce(cudaStream_t stream) override {
    check(occlAllReduce(changes, changes, 1, occlFloat32, occlSum, rank.comm, stream),
          "occlAllReduce");
  }
};

class JacobiAlone : public PaddedJacobi {
public:
  using PaddedJacobi::PaddedJacobi;

protected:
  void exchange(float *, cudaStream_t) override {}
  void reduce(cudaStream_t) override {}
};

// --- By hand. ---

/// The other rank's memory, and this rank's: rows and a word for each strip of each.
struct HandNeighbour {
  float *theirRows;
  uint32_t *theirWords;
  const float *rows;
  uint32_t *words;
};

struct HandHalo {
  static constexpr bool kIsThere = true;
  const bool isAbove;
  const HandNeighbour other;
  const uint32_t n, strips, strip;

  __device__ float *outgoing(uint32_t k) const { return other.theirRows + uint64_t{k} * n; }
  __device__ void send(uint32_t k) {
    __syncthreads();
    if (threadIdx.x == 0)
      cuda::atomic_ref<uint32_t, cuda::thread_scope_system>(other.theirWords[k * strips + strip])
          .store(1, cuda::memory_order_release);
  }
  __device__ const float *receive(uint32_t k) {
    constexpr long long kCycles = 20'000'000'000;
    bool isThere = true;
    if (threadIdx.x == 0) {
      const cuda::atomic_ref<uint32_t, cuda::thread_scope_system> word(
          other.words[k * strips + strip]);
      const long long begin = clock64();
      do
        isThere = word.load(cuda::memory_order_acquire) != 0;
      while (!isThere && clock64() - begin < kCycles);
    }
    return __syncthreads_and(isThere) != 0 ? other.rows + uint64_t{k} * n : nullptr;
  }
};

__global__ void __launch_bounds__(kThreads, kBlocksPerMultiprocessor)
    iterateByHand(Stripe stripe, uint32_t iterations, HandNeighbour above, HandNeighbour below) {
  const Tile tile = tileOf(stripe, blockIdx.x);
  const bool isTop = tile.band == 0, isBottom = tile.band + 1 == stripe.bands;
  const HandNeighbour &other = isTop ? above : below;
  if ((!isTop && !isBottom) || other.words == nullptr)
    return iterate(stripe, tile, iterations, NoHalo());
  iterate(stripe, tile, iterations, HandHalo{isTop, other, stripe.n, stripe.strips, tile.strip});
}

class JacobiByHand : public JacobiForm {
public:
  JacobiByHand(Rank &rank, const JacobiShape &shape)
      : rank(rank), shape(shape),
        tiling(tilingOf(shape, reinterpret_cast<const void *>(iterateByHand), kThreads)) {
    const std::vector<float> ones(shape.n, 1.f);
    for (float *&grid : grids)
      check(cudaMalloc(&grid, shape.elements() * sizeof(float)), "cudaMalloc");
    check(cudaMalloc(&boundary, 2 * shape.n * sizeof(float)), "cudaMalloc");
    check(cudaMemset(boundary, 0, 2 * shape.n * sizeof(float)), "cudaMemset");
    check(cudaMemcpy(boundary, ones.data(), shape.n * sizeof(float), cudaMemcpyDefault),
          "cudaMemcpy");
    check(cudaMalloc(&done, tiling.strips * tiling.bands * sizeof(uint32_t)), "cudaMalloc");
    check(cudaMalloc(&changes, sizeof(float)), "cudaMalloc");
    // An allocation of its own each, as the other rank gets all of it.
    for (char *&side : own) {
      check(cudaMalloc(&side, std::max<uint64_t>(sideBytes(), 2 << 20)), "cudaMalloc");
      check(cudaMemset(side, 0, sideBytes()), "cudaMemset");
    }
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    openPeers();
  }
  ~JacobiByHand() override {
    for (char *memory : theirs)
      if (memory)
        cudaIpcCloseMemHandle(memory);
    if (std::uncaught_exceptions() == 0)
      rank.together.meet(); // nobody has it open
    for (void *memory :
         {static_cast<void *>(grids[0]), static_cast<void *>(grids[1]),
          static_cast<void *>(boundary), static_cast<void *>(done), static_cast<void *>(changes),
          static_cast<void *>(own[0]), static_cast<void *>(own[1])})
      cudaFree(memory);
  }

  float *grid() const override { return grids[0]; }
  const float *change() const override { return changes; }
  void enqueue(cudaStream_t stream) override {
    const uint32_t tiles = tiling.strips * tiling.bands;
    check(cudaMemsetAsync(done, 0, tiles * sizeof(uint32_t), stream), "cudaMemsetAsync");
    check(cudaMemsetAsync(changes, 0, sizeof(float), stream), "cudaMemsetAsync");
    Stripe stripe = {
        shape.n,  shape.rows(),       tiling.strips, tiling.bands, {grids[0], grids[1]},
        boundary, boundary + shape.n, done,          changes};
    uint32_t iterations = shape.iterations;
    HandNeighbour above = neighbour(0), below = neighbour(1);
    void *arguments[] = {&stripe, &iterations, &above, &below};
    launchTiles(reinterpret_cast<const void *>(iterateByHand), tiles, kThreads, arguments, stream);
    // The words are taken back before the others go on to what stores them again.
    for (char *side : own)
      check(cudaMemsetAsync(side + rowBytes(), 0, wordBytes(), stream), "cudaMemsetAsync");
    check(occlAllReduce(changes, changes, 1, occlFloat32, occlSum, rank.comm, stream),
          "occlAllReduce");
  }

private:
  uint64_t rowBytes() const { return uint64_t{shape.iterations} * shape.n * sizeof(float); }
  uint64_t wordBytes() const {
    return uint64_t{shape.iterations} * tiling.strips * sizeof(uint32_t);
  }
  uint64_t sideBytes() const { return rowBytes() + wordBytes(); }
  /// Side 0: above.
  HandNeighbour neighbour(int side) const {
    char *there = theirs[side];
    if (!there)
      return {};
    return {reinterpret_cast<float *>(there), reinterpret_cast<uint32_t *>(there + rowBytes()),
            reinterpret_cast<const float *>(own[side]),
            reinterpret_cast<uint32_t *>(own[side] + rowBytes())};
  }
  /// What the one above has below is this rank's to store to, and the other way round.
  void openPeers() {
    for (uint32_t r = 0; r < shape.numRanks; ++r)
      for (int side = 0; side < 2; ++side) {
        cudaIpcMemHandle_t handle;
        static_assert(sizeof handle <= Together::kNoteBytes);
        if (r == shape.rank) {
          check(cudaIpcGetMemHandle(&handle, own[side]), "cudaIpcGetMemHandle");
          std::memcpy(rank.together.note(), &handle, sizeof handle);
        }
        rank.together.meet();
        std::memcpy(&handle, rank.together.note(), sizeof handle);
        rank.together.meet();
        const bool isMine = side == 1 ? r + 1 == shape.rank : r == shape.rank + 1;
        if (isMine)
          check(cudaIpcOpenMemHandle(reinterpret_cast<void **>(&theirs[1 - side]), handle,
                                     cudaIpcMemLazyEnablePeerAccess),
                "cudaIpcOpenMemHandle");
      }
  }

  Rank &rank;
  const JacobiShape shape;
  const Tiling tiling;
  float *grids[2] = {nullptr, nullptr}, *boundary = nullptr, *changes = nullptr;
  uint32_t *done = nullptr;
  char *own[2] = {nullptr, nullptr}, *theirs[2] = {nullptr, nullptr};
};

class PartitionedJacobi : public JacobiForm {
public:
  PartitionedJacobi(Rank &rank, const JacobiShape &shape) : jacobi(rank.comm, shape) {}
  float *grid() const override { return jacobi.grid(); }
  void enqueue(cudaStream_t stream) override { jacobi.enqueue(stream); }
  const float *change() const override { return jacobi.change(); }

private:
  Jacobi jacobi;
};

} // namespace

std::unique_ptr<JacobiForm> partitionedJacobi(Rank &rank, const JacobiShape &shape) {
  return std::make_unique<PartitionedJacobi>(rank, shape);
}
std::unique_ptr<JacobiForm> jacobiByHand(Rank &rank, const JacobiShape &shape) {
  return std::make_unique<JacobiByHand>(rank, shape);
}
std::unique_ptr<JacobiForm> ncclJacobi(Rank &rank, const JacobiShape &shape) {
  return rank.nccl ? std::make_unique<NcclJacobi>(rank, shape) : nullptr;
}
std::unique_ptr<JacobiForm> overlappedJacobi(Rank &rank, const JacobiShape &shape) {
  return rank.nccl ? std::make_unique<OverlappedJacobi>(rank, shape) : nullptr;
}
std::unique_ptr<JacobiForm> synchronisedJacobi(Rank &rank, const JacobiShape &shape) {
  return std::make_unique<SynchronisedJacobi>(rank, shape);
}
std::unique_ptr<JacobiForm> jacobiAlone(Rank &rank, const JacobiShape &shape) {
  return std::make_unique<JacobiAlone>(rank, shape);
}

} // namespace occl::bench
