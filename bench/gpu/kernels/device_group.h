// The ranks of one process: each on a device of its own, or all on one device. Every failed CUDA
// call ends the process with the call's name: a measurement cannot go on without it.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace occl::bench {

/// Ends the process if `error` is one.
void require(int error, const char *what);

class DeviceGroup {
public:
  /// Enables access between all devices used.
  DeviceGroup(uint32_t numRanks, bool onOneDevice, uint64_t poolBytes);
  ~DeviceGroup();
  DeviceGroup(const DeviceGroup &) = delete;
  DeviceGroup &operator=(const DeviceGroup &) = delete;

  uint32_t numRanks() const { return ranks; }
  uint32_t numDevices() const { return static_cast<uint32_t>(streams.size()); }
  uint32_t ranksPerDevice() const { return ranks / numDevices(); }
  uint32_t deviceOf(uint32_t rank) const { return rank % numDevices(); }
  cudaStream_t stream(uint32_t device) const { return streams[device]; }

  /// Memory of a rank's device, until the end of the group.
  char *allocate(uint32_t rank, uint64_t bytes);
  /// Memory from the rank's pool, aligned to 256 bytes, zeroed, until releasePools(); null if the
  /// pool has no more.
  char *takeFromPool(uint32_t rank, uint64_t bytes);
  void releasePools();

  void upload(uint32_t rank, char *to, const void *from, uint64_t bytes);
  void download(uint32_t rank, void *to, const char *from, uint64_t bytes);
  void fill(uint32_t rank, char *to, int value, uint64_t bytes);
  /// Waits for everything on all devices. Bounded as the kernels are.
  void synchronize();

  /// enqueue(device) on every device, `repetitions` times as one graph of each device, replayed
  /// `replays` times after one replay to warm up: microseconds for one repetition, of the slowest
  /// device. `enqueueAll`, if there is one, enqueues on all devices at once instead.
  double timeInGraph(uint32_t repetitions, uint32_t replays,
                     const std::function<void(uint32_t repetition, uint32_t device)> &enqueue,
                     const std::function<void()> &enqueueAll = {});

private:
  void use(uint32_t rank) const;

  struct Pool {
    char *begin = nullptr;
    uint64_t used = 0;
  };
  uint32_t ranks;
  uint64_t poolBytes;
  std::vector<cudaStream_t> streams; // by device
  std::vector<Pool> pools;           // by rank
  std::vector<std::pair<uint32_t, char *>> allocations;
};

} // namespace occl::bench
