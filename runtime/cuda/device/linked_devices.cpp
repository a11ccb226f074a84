// Asks CUDA about a device: its names, its capability, and the devices that it reaches.
#include "runtime/cuda/device/linked_devices.h"

#include "runtime/cuda/device/built_for.h"
#include "runtime/cuda/device/cuda_calls.h"

#include <algorithm>
#include <cstdint>
#include <string>

namespace occl::cuda {

namespace {

Status nameOf(int device, char (&name)[PeerPaths::kNameBytes]) {
  return toStatus(cudaDeviceGetPCIBusId(name, sizeof name, device), "asking for a PCI bus id");
}

Status uuidOf(int device, char (&uuid)[PeerPaths::kNameBytes]) {
  cudaDeviceProp properties;
  Status status = toStatus(cudaGetDeviceProperties(&properties, device), "asking for a UUID");
  static_assert(sizeof properties.uuid.bytes == sizeof uuid);
  if (status.ok())
    std::ranges::copy(properties.uuid.bytes, uuid);
  return status;
}

StatusOr<int> attributeOf(int device, cudaDeviceAttr attribute) {
  int value = 0;
  Status status =
      toStatus(cudaDeviceGetAttribute(&value, attribute, device), "asking what a device can do");
  if (!status.ok())
    return status;
  return value;
}

/// Devices without a path between them have no such attribute.
bool isLinked(int device, int other) {
  for (cudaDeviceP2PAttr attribute :
       {cudaDevP2PAttrAccessSupported, cudaDevP2PAttrNativeAtomicSupported}) {
    int value = 0;
    if (!toStatus(cudaDeviceGetP2PAttribute(&value, attribute, device, other), "").ok() ||
        value == 0)
      return false;
  }
  return true;
}

StatusOr<uint32_t> computeCapabilityOf(int device) {
  auto major = attributeOf(device, cudaDevAttrComputeCapabilityMajor);
  auto minor = attributeOf(device, cudaDevAttrComputeCapabilityMinor);
  if (!major.ok() || !minor.ok())
    return major.ok() ? minor.status() : major.status();
  return static_cast<uint32_t>(*major * 10 + *minor);
}

} // namespace

Status lookAtPaths(int device, PeerPaths &paths) {
  // The device itself: capability, and the names by which other ranks know it.
  auto capability = computeCapabilityOf(device);
  if (!capability.ok())
    return capability.status();
  paths.computeCapability = *capability;
  Status status = nameOf(device, paths.device);
  if (status.ok())
    status = uuidOf(device, paths.uuid);
  // Every other device of this process: whether it is out of reach, and whether NVLink joins it.
  int number = 0;
  if (status.ok())
    status = toStatus(cudaGetDeviceCount(&number), "looking for CUDA devices");
  uint32_t linked = 0, unreachable = 0;
  for (int other = 0; other < number && status.ok(); ++other) {
    int can = 1;
    if (other != device)
      status = toStatus(cudaDeviceCanAccessPeer(&can, device, other),
                        "asking whether devices access each other's memory");
    if (status.ok() && can == 0 && unreachable < PeerPaths::kMaxNamed)
      status = nameOf(other, paths.unreachable[unreachable++]);
    if (status.ok() && other != device && isLinked(device, other) && linked < PeerPaths::kMaxNamed)
      status = nameOf(other, paths.linked[linked++]);
  }
  paths.numLinked = linked;
  paths.numUnreachable = unreachable;
  return status;
}

DeviceCode deviceCode() { return {builtFor(), ptxFor()}; }

Status checkBuiltFor(int device) {
  auto capability = computeCapabilityOf(device);
  if (!capability.ok())
    return capability.status();
  const std::string why = whyNoCode(deviceCode(), *capability);
  return why.empty() ? Status()
                     : Status(StatusCode::InvalidArgument,
                              "CUDA device " + std::to_string(device) + " has " + why);
}

} // namespace occl::cuda
