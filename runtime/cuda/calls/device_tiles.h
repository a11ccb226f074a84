// How chunks are cut into tiles on devices.
#pragma once

#include "plan/model/plan.h"
#include "runtime/exec/bind/bind.h"

#include <cstdint>

namespace occl::cuda {

/// partBytes: of one part of the collective's data. The same on all ranks.
interpreter::TilePolicy tilesFor(const plan::Plan &plan, uint64_t partBytes);

} // namespace occl::cuda
