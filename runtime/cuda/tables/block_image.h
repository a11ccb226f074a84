// What one thread block needs of a program, in one contiguous piece of memory: what a device block
// copies into its shared memory before it starts, so that decoding an instruction costs no trip to
// device memory.
#pragma once

#include "runtime/base/host_device.h"
#include "runtime/exec/step/invocation.h"
#include "runtime/exec/step/ready.h"

#include <cstdint>
#include <vector>

namespace occl::cuda {

/// Stands at the begin of an image. The program's pointers hold offsets from there until
/// `relocate`.
struct alignas(16) ImageHeader {
  interpreter::Program program;
  /// If isReady: the tables with which the block's steps are made ready.
  interpreter::ReadyTables ready;
  /// Where in its rank's arena block control words lie that only this thread block and its peers
  /// use.
  const uint64_t *controls = nullptr;
  uint32_t numControls = 0;
  uint32_t bytes = 0; // of the image; this and the next are multiples of 16
  /// Of its begin, up to which `ready` and `controls` lie.
  uint32_t readyBytes = 0;
  /// That much, and a ReadyWord for each source, fit into kTableBytes.
  bool isReady = false;
  /// Steps and pieces are measured for places that are multiples of 16.
  bool isMeasured = false;
};

/// The program's tables, cut down to those of `block`, which keeps its number, and to what devices
/// look at: no needs, no doorbells; the ends of connections only for lines. Before them those with
/// which steps are made ready, if all fit into kTableBytes. Not yet relocated.
std::vector<char> makeBlockImage(const interpreter::Program &program, uint32_t block);

/// Makes the program's pointers valid for an image that lies at `base` (of the memory space in
/// which it will be read).
OCCL_INLINE void relocate(ImageHeader &header, const char *base) {
  auto move = [base](auto *&pointer) {
    using Pointer = decltype(pointer + 0);
    pointer =
        reinterpret_cast<Pointer>(const_cast<char *>(base) + reinterpret_cast<uintptr_t>(pointer));
  };
  interpreter::Program &program = header.program;
  move(program.blocks);
  move(program.instructions);
  move(program.operands);
  move(program.acquires);
  move(program.releases);
  move(program.ends);
  move(program.peers);
  move(program.chunkBegins);
  move(header.controls);
  move(header.ready.sources);
  move(header.ready.obstacles);
  move(header.ready.steps);
  move(header.ready.pieces);
}

} // namespace occl::cuda
