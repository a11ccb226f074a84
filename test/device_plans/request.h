// How communicators on devices bind plans: runtime/cuda/calls/shape.cpp.
#pragma once

#include "plan/model/plan.h"
#include "runtime/cuda/calls/device_tiles.h"
#include "runtime/cuda/calls/ordered_geometry.h"
#include "runtime/cuda/tables/limits.h"
#include "runtime/exec/bind/bind.h"

#include <cstdint>

namespace occl {

/// For parts of so many bytes of floats, with messages where those sizes have them.
inline interpreter::BindRequest requestFor(const plan::Plan &plan, uint64_t bytes, uint32_t rank,
                                           const cuda::OrderedGeometry &sizes) {
  interpreter::BindRequest request;
  request.rank = rank;
  request.count = bytes / sizeof(float);
  request.tiles = cuda::tilesFor(plan, bytes);
  request.placement = interpreter::Placement::AtDestination;
  request.lines = interpreter::kDeviceLines;
  request.slotsOffset = sizes.partFor(plan.protocol).offset;
  request.stepOperands = cuda::kMaxStepOperands;
  return request;
}

} // namespace occl
