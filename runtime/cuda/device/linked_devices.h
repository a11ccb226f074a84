// What CUDA says of a device and of the paths from it.
#pragma once

#include "runtime/base/status.h"
#include "runtime/cuda/device/device_code.h"
#include "runtime/cuda/device/peer_paths.h"

namespace occl::cuda {

/// Fills in what the rank on that device says of its paths, but for what the user wants. NVLink is
/// known by native atomic operations, which CUDA reports of links between devices that this process
/// sees. SystemError.
Status lookAtPaths(int device, PeerPaths &paths);

/// What this library has.
DeviceCode deviceCode();
/// InvalidArgument, with what the library was built for, if the device cannot run it.
Status checkBuiltFor(int device);

} // namespace occl::cuda
