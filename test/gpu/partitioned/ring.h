// A ring of partitioned transfers on one rank: it sends to the next one, and receives from the one
// before.
#pragma once

#include "runtime/api/occl.h"
#include "test/gpu/partitioned/part_users.h"

#include <cuda_runtime.h>

#include <cstdint>
#include <string>

namespace occl::gpu_test {

struct RingShape {
  uint64_t sent = 1, received = 1; // partitions
  uint64_t bytes = 0;              // in all
  uint64_t perMessage = 0;         // as in the config

  std::string name() const;
};

/// The rank's device is current in all calls. To be made before anything waits on the device, and
/// destroyed when nothing does any more: CUDA takes and frees memory when the device is idle.
class Ring {
public:
  /// Both requests, and their memory. tag: of both.
  Ring(occlComm_t comm, uint32_t rank, uint32_t numRanks, RingShape shape, int64_t tag = 0);
  ~Ring();
  Ring(const Ring &) = delete;
  Ring &operator=(const Ring &) = delete;

  /// "" or what went wrong so far.
  const std::string &wrong() const { return text; }
  Field out() const { return {source, shape.sent, shape.bytes / shape.sent}; }
  Field in() const { return {place, shape.received, shape.bytes / shape.received}; }
  occlPartDevice_t handle(occlPart_t part);
  /// The data of rank r in this epoch.
  uint64_t keyOf(uint32_t r, uint64_t epoch) const { return epoch * 1009 + r * 17; }
  uint64_t ownKey(uint64_t epoch) const { return keyOf(rank, epoch); }
  uint64_t theirKey(uint64_t epoch) const { return keyOf((rank + numRanks - 1) % numRanks, epoch); }

  /// Into the stream: both begin, and what is to be received is spoilt; the data are made and
  /// marked; both waits, and the check.
  void start(cudaStream_t stream);
  void produce(cudaStream_t stream, uint64_t epoch, Marker marker);
  void waitAndCheck(cudaStream_t stream, uint64_t epoch);
  /// Of calls of OCCL and of CUDA.
  void expect(occlResult_t result, const char *what);
  void expect(int error, const char *what);
  /// Waits for the stream, 30 s at most; then what was wrong.
  std::string finish(cudaStream_t stream);
  /// Both requests, of another shape and no more bytes, in the memory that there is.
  void make(RingShape other);
  /// Frees both, which have ended.
  void free();
  /// Its communicator has been destroyed, and what it had of that with it.
  void forget() { comm = nullptr; }

  occlPart_t send = nullptr, receive = nullptr;
  uint64_t *different = nullptr; // of what was checked

private:
  occlComm_t comm;
  const uint32_t rank, numRanks;
  RingShape shape;
  const int64_t tag;
  char *source = nullptr, *place = nullptr;
  std::string text;
};

} // namespace occl::gpu_test
