// The images of all thread blocks of a program, as its device has them. Host code.
#pragma once

#include "runtime/exec/step/invocation.h"

#include <cstdint>
#include <memory_resource>
#include <vector>

namespace occl::cuda {

/// So many bytes apart, a multiple of 128: no image has more (block_image.h).
struct BlockImages {
  std::pmr::vector<std::pmr::vector<char>> blocks;
  uint64_t stride = 0;

  uint64_t bytes() const { return stride * blocks.size(); }
  /// So many bytes; what lies between images stays as it is.
  void writeTo(char *memory) const;
};

/// They are of `memory`, which outlives them.
BlockImages makeBlockImages(const interpreter::Program &program,
                            std::pmr::memory_resource *memory = std::pmr::get_default_resource());

} // namespace occl::cuda
