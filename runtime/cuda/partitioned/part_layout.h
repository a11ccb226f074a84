// How a send on a device is cut, and where its words lie. Plain numbers: knows no memory.
#pragma once

#include "runtime/api/occl_device_parts.cuh"
#include "runtime/partitioned/shape.h"

#include <cstdint>

namespace occl::cuda {

namespace device = occl::device::detail;

/// The same on both sides, of what the sender says.
device::Cut cutOf(const partitioned::Shape &shape);

/// Of a request's block: its state, and behind it, if it is a send, its words. Offsets in bytes.
struct PartLayout {
  uint64_t marked, counted = 0, units = 0, bytes;

  PartLayout(bool isSend, const device::Cut &cut, uint64_t partitions);
};

} // namespace occl::cuda
