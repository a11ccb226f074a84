// The gradient of a loss, summed over all ranks: the kernel that computes it marks each part of it,
// and the sum of the first parts is made while it computes the last ones.
#pragma once

#include "runtime/api/occl.h"
#include "runtime/api/occl_partitioned_collectives.h"
#include "runtime/api/occl_partitioned_device.h"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace occl::examples {

struct LossShape {
  uint64_t count = 0; // floats, a multiple of 4
  int64_t partitions = 1;
  uint64_t rounds = 0; // as in occlPartConfig_t
  /// Parts of the buffer, which are computed side by side: partitions are a multiple of it. In one
  /// round each rank sums up a part; the first pieces of all of them make a sum begin early.
  uint32_t parts = 1;
  /// Thread blocks of the kernel. The sum is made by the library's kernel beside it, which needs
  /// multiprocessors: a grid that leaves some is done sooner.
  uint32_t blocks = 0;
};

/// One rank's; buffers are device memory of `count` floats. Throws std::runtime_error. The rank's
/// device is current in all calls.
class LossStep {
public:
  LossStep(occlComm_t comm, const LossShape &shape, const float *logits, const float *labels,
           float *gradient, float *sum);
  ~LossStep();
  LossStep(const LossStep &) = delete;
  LossStep &operator=(const LossStep &) = delete;

  /// Gradient and sum, as the stream's next work. Not to be captured: the host begins epochs.
  void enqueue(cudaStream_t stream);

private:
  const LossShape shape;
  const float *logits, *labels;
  float *gradient;
  occlPart_t part = nullptr;
  occlPartDevice_t handle{};
};

} // namespace occl::examples
