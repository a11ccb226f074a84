// A product of matrices, summed over all ranks, by a library whose kernels know nothing of
// communication, as cuBLAS: it is computed in bands of rows, and the sum of a band is made while
// the next one is computed.
#pragma once

#include "runtime/api/occl.h"
#include "runtime/api/occl_partitioned_collectives.h"
#include "runtime/api/occl_partitioned_device.h"

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>

namespace occl::examples {

struct BandsShape {
  uint64_t rows = 0, columns = 0; // of the product, row-major; rows are a multiple of bands
  uint32_t bands = 1;
  occlDataType_t type = occlBfloat16;
  uint64_t rounds = 0; // as in occlPartConfig_t
};

/// One rank's; buffers are device memory. Throws std::runtime_error. The rank's device is current.
class ProductInBands {
public:
  /// multiply(first, rows, stream): puts into the stream what computes these rows of `product`.
  using Multiply = std::function<void(uint64_t, uint64_t, cudaStream_t)>;

  ProductInBands(occlComm_t comm, const BandsShape &shape, const void *product, void *sum,
                 Multiply multiply);
  ~ProductInBands();
  ProductInBands(const ProductInBands &) = delete;
  ProductInBands &operator=(const ProductInBands &) = delete;

  /// Product and sum, as the stream's next work. Not to be captured: the host begins epochs.
  void enqueue(cudaStream_t stream);

private:
  const BandsShape shape;
  const Multiply multiply;
  occlPart_t part = nullptr;
};

} // namespace occl::examples
