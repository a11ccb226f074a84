// Ranks that are threads, each with a ring or several.
#pragma once

#include "test/gpu/harness/ranks_on_devices.h"
#include "test/gpu/harness/user_kernels.h"
#include "test/gpu/partitioned/ring.h"

#include <gtest/gtest.h>

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace occl::gpu_test {

class RanksInRings : public RanksOnDevices {
protected:
  void SetUp() override {
    RanksOnDevices::SetUp();
    if (!IsSkipped())
      startWithTimeout(20000);
  }
  /// On each device, before anything waits there; an error of CUDA.
  virtual int loadKernels() { return loadUserKernels(); }
  /// body(ring or rings) on a thread for each rank, "" or what is wrong. Rings are there before.
  void onRings(
      const std::vector<RingShape> &shapes,
      const std::function<std::string(uint32_t, std::vector<std::unique_ptr<Ring>> &)> &body,
      const std::function<int64_t(size_t)> &tag = [](size_t) { return 0; }) {
    std::vector<std::vector<std::unique_ptr<Ring>>> all(n());
    for (uint32_t rank = 0; rank < n(); ++rank) {
      cudaSetDevice(static_cast<int>(rank % devices));
      EXPECT_EQ(loadKernels(), cudaSuccess);
      for (size_t i = 0; i < shapes.size(); ++i)
        all[rank].push_back(std::make_unique<Ring>(comms[rank], rank, n(), shapes[i], tag(i)));
    }
    inThreads([&](uint32_t rank) { return body(rank, all[rank]); });
  }
  void onRing(RingShape shape, const std::function<std::string(uint32_t, Ring &)> &body) {
    onRings({shape}, [&](uint32_t rank, auto &rings) { return body(rank, *rings[0]); });
  }
};

} // namespace occl::gpu_test
