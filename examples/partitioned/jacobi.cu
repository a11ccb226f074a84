#include "examples/partitioned/jacobi.h"

#include "examples/partitioned/check.h"
#include "examples/partitioned/jacobi_tile.cuh"
#include "runtime/api/occl_collectives.h"
#include "runtime/api/occl_device.cuh"

#include <algorithm>
#include <new>

namespace occl::examples {

namespace {

constexpr uint64_t kNanoseconds = 10'000'000'000;
constexpr uint32_t kThreadsWithExchange = kThreads + 32;

/// What a tile at the edge exchanges: a strip of a row for each iteration. A warp of its own does
/// that, while the others compute. This is in shared memory, and what is called is not in line, so
/// that registers are left to the computation, and nothing of it waits for an exchange's stack.
struct PartitionedHalo {
  static constexpr bool kIsThere = true;
  const bool isAbove;
  device::Part sends, receives;
  float *rowsOut;
  const float *rowsIn;
  uint32_t n, strips, strip;

  __device__ static bool isMyWarp() { return threadIdx.x >= kThreads; }
  __device__ float *outgoing(uint32_t k) const { return rowsOut + uint64_t{k} * n; }
  __device__ void send(uint32_t k) {
    __syncthreads(); // all have stored
    if (isMyWarp())
      sendStrip(uint64_t{k} * strips + strip);
  }
  __device__ const float *receive(uint32_t k) {
    const bool isThere = !isMyWarp() || waitForStrip(uint64_t{k} * strips + strip);
    return __syncthreads_and(isThere) != 0 ? rowsIn + uint64_t{k} * n : nullptr;
  }

  __device__ __noinline__ void sendStrip(uint64_t partition) {
    ready(device::Warp(), sends, partition);
  }
  __device__ __noinline__ bool waitForStrip(uint64_t partition) {
    return wait(device::Warp(), receives, partition, kNanoseconds) == device::Wait::Arrived;
  }
};

__global__ void __launch_bounds__(kThreadsWithExchange, kBlocksPerMultiprocessor)
    iterateTiles(Stripe stripe, uint32_t iterations, JacobiNeighbour above, JacobiNeighbour below) {
  const Tile tile = tileOf(stripe, blockIdx.x);
  const bool isTop = tile.band == 0, isBottom = tile.band + 1 == stripe.bands;
  const JacobiNeighbour &other = isTop ? above : below;
  if ((!isTop && !isBottom) || other.send == nullptr)
    return iterate(stripe, tile, iterations, NoHalo());
  __shared__ alignas(PartitionedHalo) unsigned char place[sizeof(PartitionedHalo)];
  if (threadIdx.x == 0)
    new (place) PartitionedHalo{isTop,
                                device::Part(other.sends),
                                device::Part(other.receives),
                                other.outgoing,
                                other.incoming,
                                stripe.n,
                                stripe.strips,
                                tile.strip};
  __syncthreads();
  iterate(stripe, tile, iterations, reinterpret_cast<PartitionedHalo &>(place));
}

} // namespace

Tiling tilingOf(const JacobiShape &shape, const void *kernel, uint32_t threads) {
  int device = 0, multiprocessors = 0, each = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  check(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device),
        "cudaDeviceGetAttribute");
  check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, kernel, static_cast<int>(threads), 0),
        "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
  const auto blocks = static_cast<uint32_t>(each * multiprocessors) / shape.ranksOfDevice;
  Tiling tiling;
  tiling.strips = (shape.n + kMostColumns - 1) / kMostColumns;
  tiling.bands = std::min(blocks / tiling.strips, shape.rows());
  if (shape.n % (4 * tiling.strips) != 0 || tiling.bands < 2 || shape.iterations % 2 != 0)
    throw std::runtime_error("Jacobi: a grid of this size is not divided among so many ranks");
  return tiling;
}

void launchTiles(const void *kernel, uint32_t blocks, uint32_t threads, void **arguments,
                 cudaStream_t stream) {
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeCooperative;
  attribute.val.cooperative = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = blocks;
  config.blockDim = threads;
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  check(cudaLaunchKernelExC(&config, kernel, arguments), "launching the iterations");
}

Jacobi::Jacobi(occlComm_t comm, const JacobiShape &shape)
    : comm(comm), shape(shape),
      tiling(tilingOf(shape, reinterpret_cast<const void *>(iterateTiles), kThreadsWithExchange)) {
  for (float *&grid : grids)
    check(cudaMalloc(&grid, shape.elements() * sizeof(float)), "cudaMalloc");
  const std::vector<float> ones(shape.n, 1.f);
  check(cudaMalloc(&boundary, 2 * shape.n * sizeof(float)), "cudaMalloc");
  check(cudaMemset(boundary, 0, 2 * shape.n * sizeof(float)), "cudaMemset");
  check(cudaMemcpy(boundary, ones.data(), shape.n * sizeof(float), cudaMemcpyDefault),
        "cudaMemcpy");
  check(cudaMalloc(&done, tiling.strips * tiling.bands * sizeof(uint32_t)), "cudaMalloc");
  check(cudaMalloc(&changes, sizeof(float)), "cudaMalloc");
  if (shape.rank > 0)
    connect(above, shape.rank - 1);
  if (shape.rank + 1 < shape.numRanks)
    connect(below, shape.rank + 1);
}

void Jacobi::connect(JacobiNeighbour &neighbour, int64_t rank) {
  const uint64_t bytes = uint64_t{shape.iterations} * shape.n * sizeof(float);
  const int64_t partitions = int64_t{shape.iterations} * tiling.strips;
  const uint64_t count = shape.n / tiling.strips;
  void *memory = nullptr;
  check(occlMemAlloc(comm, bytes, &memory), "occlMemAlloc"); // a receive's is of OCCL
  neighbour.incoming = static_cast<float *>(memory);
  check(cudaMalloc(&neighbour.outgoing, bytes), "cudaMalloc");
  check(occlPsendInit(comm, neighbour.outgoing, partitions, count, occlFloat32, rank, 0, nullptr,
                      &neighbour.send),
        "occlPsendInit");
  check(occlPrecvInit(comm, neighbour.incoming, partitions, count, occlFloat32, rank, 0, nullptr,
                      &neighbour.receive),
        "occlPrecvInit");
  check(occlPdevice(neighbour.send, &neighbour.sends), "occlPdevice");
  check(occlPdevice(neighbour.receive, &neighbour.receives), "occlPdevice");
}

void Jacobi::enqueue(cudaStream_t stream) {
  // The epoch begins: receives first, so that marks find them started.
  for (occlPart_t part : {above.receive, below.receive, above.send, below.send})
    if (part)
      check(occlPstartOn(part, stream), "occlPstartOn");
  const uint32_t tiles = tiling.strips * tiling.bands;
  check(cudaMemsetAsync(done, 0, tiles * sizeof(uint32_t), stream), "cudaMemsetAsync");
  check(cudaMemsetAsync(changes, 0, sizeof(float), stream), "cudaMemsetAsync");

  // All iterations.
  Stripe stripe = {shape.n,  shape.rows(),       tiling.strips, tiling.bands, {grids[0], grids[1]},
                   boundary, boundary + shape.n, done,          changes};
  uint32_t iterations = shape.iterations;
  void *arguments[] = {&stripe, &iterations, &above, &below};
  launchTiles(reinterpret_cast<const void *>(iterateTiles), tiles, kThreadsWithExchange, arguments,
              stream);

  // The epoch ends, and ranks add up how much has changed.
  for (occlPart_t part : {above.send, below.send, above.receive, below.receive})
    if (part)
      check(occlPwaitOn(part, stream), "occlPwaitOn");
  check(occlAllReduce(changes, changes, 1, occlFloat32, occlSum, comm, stream), "occlAllReduce");
}

Jacobi::~Jacobi() {
  for (const JacobiNeighbour &neighbour : {above, below}) {
    if (neighbour.send)
      occlPfree(neighbour.send);
    if (neighbour.receive)
      occlPfree(neighbour.receive);
    cudaFree(neighbour.outgoing);
    if (neighbour.incoming)
      occlMemFree(comm, neighbour.incoming);
  }
  for (void *memory :
       {static_cast<void *>(grids[0]), static_cast<void *>(grids[1]), static_cast<void *>(boundary),
        static_cast<void *>(done), static_cast<void *>(changes)})
    cudaFree(memory);
}

} // namespace occl::examples
