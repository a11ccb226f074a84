// The tables of a rank's straight thread blocks as its device has them.
#pragma once

#include "runtime/cuda/tables/device_collective.h"
#include "runtime/exec/step/invocation.h"

#include <vector>

namespace occl::cuda {

struct StraightTablesOnDevice {
  std::vector<char> bytes;
  StraightImages layout; // `images` is not set
};

/// No bytes unless all blocks of the program are straight. It was bound with
/// BindRequest::lineStepBytes of kMaxStraightStepBytes.
StraightTablesOnDevice makeStraightImages(const interpreter::Program &program);

} // namespace occl::cuda
