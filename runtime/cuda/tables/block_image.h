// What one thread block needs of a program, in one contiguous piece of memory: what a device block
// copies into its shared memory before it starts, so that looking something up costs no trip to
// device memory.
#pragma once

#include "runtime/base/host_device.h"
#include "runtime/exec/step/invocation.h"
#include "runtime/exec/step/ready.h"

#include <cstdint>
#include <memory_resource>
#include <vector>

namespace occl::cuda {

/// Stands at the begin of an image. Pointers hold offsets from there until `relocate`.
struct alignas(16) ImageHeader {
  /// Without its tables.
  interpreter::Program program;
  interpreter::ReadyTables ready;
  uint32_t bytes = 0; // of the image; a multiple of 16
  /// Some steps are made ready one by one: Resolution::PerStep.
  bool isPerStep = false;
  /// Steps and pieces are measured for places that are multiples of 16.
  bool isMeasured = false;
};

/// Of an image and a ReadyWord for each source behind it.
OCCL_INLINE uint32_t roomBytes(const ImageHeader &header) {
  return header.bytes + header.ready.numSources * uint32_t(sizeof(interpreter::ReadyWord));
}

/// Of `block`, of so many bytes as roomBytes() says. Not yet relocated. It is of `memory`, which
/// outlives it.
std::pmr::vector<char>
makeBlockImage(const interpreter::Program &program, uint32_t block,
               std::pmr::memory_resource *memory = std::pmr::get_default_resource());

/// Makes the pointers valid for an image that lies at `base` (of the memory space in which it will
/// be read).
OCCL_INLINE void relocate(ImageHeader &header, const char *base) {
  auto move = [base](auto *&pointer) {
    using Pointer = decltype(pointer + 0);
    pointer =
        reinterpret_cast<Pointer>(const_cast<char *>(base) + reinterpret_cast<uintptr_t>(pointer));
  };
  move(header.ready.sources);
  move(header.ready.obstacles);
  move(header.ready.steps);
  move(header.ready.pieces);
}

} // namespace occl::cuda
