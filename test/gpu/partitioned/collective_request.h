// A partitioned collective of words on one rank: its buffers, its epochs, and what comes of them.
#pragma once

#include "plan/collectives/collectives.h"
#include "runtime/api/occl.h"
#include "runtime/api/occl_partitioned.h"
#include "test/gpu/partitioned/part_users.h"

#include <cuda_runtime.h>

#include <cstdint>
#include <string>
#include <vector>

namespace occl::gpu_test {

struct CollectiveShape {
  occlKind_t kind = occlKindAllReduce;
  uint64_t count = 0; // words of a part
  int64_t sendPartitions = 1, recvPartitions = 1;
  uint64_t rounds = 0; // as in the config
  bool isInPlace = false;
  uint32_t root = 0;

  std::string name() const;
};

/// The rank's device is current in all calls. To be made before anything waits on the device, and
/// destroyed when nothing does any more.
class CollectiveRequest {
public:
  CollectiveRequest(occlComm_t comm, uint32_t rank, uint32_t numRanks, CollectiveShape shape);
  ~CollectiveRequest();
  CollectiveRequest(const CollectiveRequest &) = delete;
  CollectiveRequest &operator=(const CollectiveRequest &) = delete;

  /// The rank's own; of no words if it has none.
  Words in() const;
  Words out() const;
  occlPartDevice_t handle();

  /// Into the stream: the epoch begins; kernels make and mark its input, as launchProduceWords();
  /// its end.
  void start(cudaStream_t stream);
  void produce(cudaStream_t stream, uint64_t first, uint64_t last, uint64_t stride = 1);
  void produceAll(cudaStream_t stream, uint64_t stride = 1) {
    produce(stream, 0, in().partitions, stride);
  }
  void wait(cudaStream_t stream);
  /// Takes partitions first to last of the output as they come, into `seen`.
  void take(cudaStream_t stream, uint64_t first, uint64_t last);
  /// Whether the output of the last epoch, or partitions first to last of what was seen of it, is
  /// what it should be; when the stream has come so far, in 30 s at most.
  void check(cudaStream_t stream);
  void checkSeen(cudaStream_t stream, uint64_t first, uint64_t last);
  void expect(occlResult_t result, const char *what);
  void expect(int error, const char *what);
  void free();
  /// Again, with the memory that there is; its epochs begin anew.
  void make();
  /// "" or what went wrong so far.
  const std::string &wrong() const { return text; }

  occlPart_t part = nullptr;
  uint64_t epoch = 0; // the last one that was started

private:
  uint64_t keyOf(uint32_t r) const { return epoch * 1009 + r * 17; }
  /// What rank r's input is in the last epoch, and what this rank's output should be.
  uint32_t inputOf(uint32_t r, uint64_t i) const { return wordOf(keyOf(r), i); }
  uint32_t outputAt(uint64_t i) const;
  plan::StandardCollective collective() const {
    return static_cast<plan::StandardCollective>(shape.kind - occlKindAllReduce);
  }
  plan::Parts parts() const { return {numRanks, shape.root, shape.count}; }
  std::vector<uint32_t> taken(cudaStream_t stream, const uint32_t *from, uint64_t words);
  void compare(const std::vector<uint32_t> &got, uint64_t begin, uint64_t end, const char *what);

  occlComm_t comm;
  const uint32_t rank, numRanks;
  const CollectiveShape shape;
  uint32_t *input = nullptr, *output = nullptr, *seen = nullptr;
  uint64_t *missing = nullptr;
  std::string text;
};

} // namespace occl::gpu_test
