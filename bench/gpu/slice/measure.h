// The slice's table: interpreter, hand-written kernels and NCCL in one run.
#pragma once

#include "bench/gpu/kernels/device_group.h"
#include "runtime/base/status.h"

#include <string>

namespace occl::bench {

/// Prints the table as it is measured. Every result is checked, every element on every rank. Needs
/// a device for each rank.
Status measureAll(DeviceGroup &group, const std::string &planDirectory);

/// Prints the times of the protocols beside each other, and NCCL's. Needs a device for each rank.
Status measureProtocols(DeviceGroup &group, const std::string &planDirectory);

/// Prints the times of plans with and without direct access to buffers beside each other, those of
/// kernels written by hand, and NCCL's. Needs a device for each rank.
Status measureDirect(DeviceGroup &group, const std::string &planDirectory);

/// Prints what a step costs, and where its cycles go. Ranks may share a device.
Status measureSteps(DeviceGroup &group, const std::string &planDirectory);

} // namespace occl::bench
