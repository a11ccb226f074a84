#include "bench/gpu/kernels/device_group.h"

#include "runtime/base/cache_line.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace occl::bench {

void require(int error, const char *what) {
  if (error == cudaSuccess)
    return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(static_cast<cudaError_t>(error)));
  std::exit(1);
}

DeviceGroup::DeviceGroup(uint32_t numRanks, bool onOneDevice, uint64_t poolBytes)
    : ranks(numRanks), poolBytes(poolBytes), streams(onOneDevice ? 1 : numRanks), pools(numRanks) {
  for (uint32_t device = 0; device < numDevices(); ++device) {
    require(cudaSetDevice(static_cast<int>(device)), "cudaSetDevice");
    for (uint32_t peer = 0; peer < numDevices(); ++peer)
      if (peer != device)
        require(cudaDeviceEnablePeerAccess(static_cast<int>(peer), 0),
                "cudaDeviceEnablePeerAccess");
    require(cudaStreamCreateWithFlags(&streams[device], cudaStreamNonBlocking),
            "cudaStreamCreateWithFlags");
  }
  for (uint32_t rank = 0; rank < ranks; ++rank)
    pools[rank].begin = allocate(rank, poolBytes);
}

DeviceGroup::~DeviceGroup() {
  for (auto [rank, memory] : allocations) {
    use(rank);
    cudaFree(memory);
  }
  for (cudaStream_t stream : streams)
    cudaStreamDestroy(stream);
}

void DeviceGroup::use(uint32_t rank) const {
  require(cudaSetDevice(static_cast<int>(deviceOf(rank))), "cudaSetDevice");
}

char *DeviceGroup::allocate(uint32_t rank, uint64_t bytes) {
  use(rank);
  void *memory = nullptr;
  require(cudaMalloc(&memory, std::max<uint64_t>(bytes, 1)), "cudaMalloc");
  allocations.emplace_back(rank, static_cast<char *>(memory));
  return static_cast<char *>(memory);
}

char *DeviceGroup::takeFromPool(uint32_t rank, uint64_t bytes) {
  Pool &pool = pools[rank];
  bytes = alignUp(std::max<uint64_t>(bytes, 1), 256);
  if (bytes > poolBytes - pool.used)
    return nullptr;
  char *memory = pool.begin + pool.used;
  pool.used += bytes;
  fill(rank, memory, 0, bytes);
  return memory;
}

void DeviceGroup::releasePools() {
  for (Pool &pool : pools)
    pool.used = 0;
}

void DeviceGroup::upload(uint32_t rank, char *to, const void *from, uint64_t bytes) {
  use(rank);
  require(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
}

void DeviceGroup::download(uint32_t rank, void *to, const char *from, uint64_t bytes) {
  use(rank);
  require(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost), "cudaMemcpy");
}

void DeviceGroup::fill(uint32_t rank, char *to, int value, uint64_t bytes) {
  use(rank);
  require(cudaMemset(to, value, bytes), "cudaMemset");
}

void DeviceGroup::synchronize() {
  for (uint32_t device = 0; device < numDevices(); ++device) {
    require(cudaSetDevice(static_cast<int>(device)), "cudaSetDevice");
    require(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }
}

double DeviceGroup::timeInGraph(uint32_t repetitions, uint32_t replays,
                                const std::function<void(uint32_t, uint32_t)> &enqueue,
                                const std::function<void()> &enqueueAll) {
  std::vector<cudaGraphExec_t> graphs(numDevices());
  std::vector<cudaEvent_t> begins(numDevices()), ends(numDevices());
  auto each = [&](auto &&work) {
    for (uint32_t device = 0; device < numDevices(); ++device) {
      require(cudaSetDevice(static_cast<int>(device)), "cudaSetDevice");
      work(device);
    }
  };
  each([&](uint32_t d) {
    require(cudaStreamBeginCapture(streams[d], cudaStreamCaptureModeRelaxed), "begin capture");
  });
  for (uint32_t i = 0; i < repetitions; ++i)
    enqueueAll ? enqueueAll() : each([&](uint32_t d) { enqueue(i, d); });
  each([&](uint32_t d) {
    cudaGraph_t graph;
    require(cudaStreamEndCapture(streams[d], &graph), "end capture");
    require(cudaGraphInstantiate(&graphs[d], graph, 0), "cudaGraphInstantiate");
    require(cudaGraphDestroy(graph), "cudaGraphDestroy");
    require(cudaEventCreate(&begins[d]), "cudaEventCreate");
    require(cudaEventCreate(&ends[d]), "cudaEventCreate");
  });
  for (uint32_t replay = 0; replay <= replays; ++replay)
    each([&](uint32_t d) {
      require(cudaGraphLaunch(graphs[d], streams[d]), "cudaGraphLaunch");
      if (replay == 0)
        require(cudaEventRecord(begins[d], streams[d]), "cudaEventRecord");
      if (replay == replays)
        require(cudaEventRecord(ends[d], streams[d]), "cudaEventRecord");
    });
  synchronize();
  float slowest = 0;
  each([&](uint32_t d) {
    float milliseconds = 0;
    require(cudaEventElapsedTime(&milliseconds, begins[d], ends[d]), "cudaEventElapsedTime");
    slowest = std::max(slowest, milliseconds);
    cudaGraphExecDestroy(graphs[d]);
    cudaEventDestroy(begins[d]);
    cudaEventDestroy(ends[d]);
  });
  return slowest * 1e3 / (double(repetitions) * replays);
}

} // namespace occl::bench
