// The images of all thread blocks of a program, as its device has them. Host code.
#pragma once

#include "runtime/exec/step/invocation.h"

#include <cstdint>
#include <vector>

namespace occl::cuda {

/// So many bytes apart, a multiple of 128: no image has more (block_image.h).
struct BlockImages {
  std::vector<char> bytes;
  uint64_t stride = 0;
};

BlockImages makeBlockImages(const interpreter::Program &program);

} // namespace occl::cuda
