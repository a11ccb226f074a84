// The streams of what a group has of a communicator, which wait for each other.
#pragma once

#include "nccl/calls/operation.h"
#include "nccl/streams/cuda_driver.h"

#include <vector>

namespace occl::nccl {

/// Of a batch with collectives: all of it goes into one of its streams, behind what all of them
/// have, and what follows in each of them waits for its end. With one stream nothing is done, and
/// nothing with transfers alone, whose streams OCCL joins. Streams that are captured become
/// branches of the graph. Used by one thread.
class JoinedStreams {
public:
  explicit JoinedStreams(const CudaDriver &driver) : driver(driver) {}

  /// Before anything of the batch, whose streams are those of the device, is launched: from then on
  /// the first one is that of all its operations.
  Outcome begin(Batch &batch, int ofDevice);
  /// When all of it is in its stream, or none will be.
  Outcome end() const;

private:
  Outcome order(const std::vector<cudaStream_t> &before,
                const std::vector<cudaStream_t> &after) const;

  const CudaDriver &driver;
  int device = 0;
  cudaStream_t first = nullptr;
  std::vector<cudaStream_t> others; // empty: there is nothing to join
};

} // namespace occl::nccl
