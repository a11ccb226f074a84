// Of a library that was built without a CUDA toolkit.
#include "runtime/cuda/device_rank.h"

namespace occl::cuda {

Status checkDevice(uint32_t) {
  return {StatusCode::InvalidArgument,
          "this library was built without CUDA: build it where nvcc is installed, or leave "
          "config->deviceKind at occlDeviceHost"};
}

DeviceCode deviceCode() { return {}; }

uint32_t numDevices() { return 0; }

uint64_t hostBytesForDevices() { return 0; }

uint64_t hostBytesForMessages(uint64_t) { return 0; }

StreamedTransfers transferInStreams(std::span<const DeviceTransfers>) { return {checkDevice(0)}; }

StatusOr<std::unique_ptr<DeviceRank>> makeDeviceRank(daemon::Fabric &,
                                                     const DeviceRankOptions &options) {
  return checkDevice(options.device);
}

} // namespace occl::cuda
