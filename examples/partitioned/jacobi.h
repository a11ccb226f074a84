// The stationary heat equation on a square, by Jacobi's method: each rank has rows of the grid, and
// in each iteration needs one row of each neighbour. One kernel computes many iterations, and
// exchanges these rows from within, by partitioned sends and receives.
#pragma once

#include "runtime/api/occl.h"
#include "runtime/api/occl_partitioned_device.h"

#include <cuda_runtime_api.h>

#include <cstdint>
#include <vector>

namespace occl::examples {

struct JacobiShape {
  uint32_t n = 0;          // rows and columns of the whole grid; columns are a multiple of 4
  uint32_t iterations = 0; // of a call of enqueue(); even
  uint32_t rank = 0, numRanks = 1;
  /// Ranks on this rank's device. Tiles wait for each other, so all have to be there at a time.
  uint32_t ranksOfDevice = 1;

  /// Rows of rank r begin at row firstRow(r) of the grid.
  uint32_t firstRow(uint32_t r) const { return static_cast<uint32_t>(uint64_t{n} * r / numRanks); }
  uint32_t rows() const { return firstRow(rank + 1) - firstRow(rank); }
  uint64_t elements() const { return uint64_t{n} * rows(); }
};

/// How many strips of columns and bands of rows its rows are divided into, as many tiles as are on
/// the device at a time, of a kernel with so many threads a block.
struct Tiling {
  uint32_t strips = 0, bands = 0;
};
Tiling tilingOf(const JacobiShape &shape, const void *kernel, uint32_t threads);
/// A kernel whose thread blocks, one for each tile, are on the device at a time.
void launchTiles(const void *kernel, uint32_t blocks, uint32_t threads, void **arguments,
                 cudaStream_t stream);

/// A rank's requests with one neighbour. Row k of both buffers is the one that iteration k needs;
/// it is in as many partitions as there are strips, so that each thread block sends its own.
struct JacobiNeighbour {
  occlPart_t send = nullptr, receive = nullptr;
  occlPartDevice_t sends{}, receives{};
  float *outgoing = nullptr, *incoming = nullptr;
};

/// One rank's. Throws std::runtime_error. The rank's device is current in all calls.
class Jacobi {
public:
  Jacobi(occlComm_t comm, const JacobiShape &shape);
  ~Jacobi();
  Jacobi(const Jacobi &) = delete;
  Jacobi &operator=(const Jacobi &) = delete;

  /// This rank's rows, one behind the other, in device memory; before and after any number of
  /// enqueue().
  float *grid() const { return grids[0]; }
  /// So many iterations, as the stream's next work; may be captured. *change, in device memory: the
  /// sum over all ranks of the squares of what the last iteration changed.
  void enqueue(cudaStream_t stream);
  const float *change() const { return changes; }

private:
  void connect(JacobiNeighbour &neighbour, int64_t rank);

  occlComm_t comm;
  const JacobiShape shape;
  const Tiling tiling;
  JacobiNeighbour above, below; // null handles: there is none
  float *grids[2] = {nullptr, nullptr}, *boundary = nullptr, *changes = nullptr;
  uint32_t *done = nullptr;
};

} // namespace occl::examples
