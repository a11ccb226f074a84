// Which elements of an instruction's chunks a tile has, and how many its message has there.
#pragma once

#include "plan/model/chunking.h"
#include "runtime/exec/step/invocation.h"

#include <cstdint>

namespace occl::interpreter::detail {

OCCL_HOST_DEVICE constexpr uint64_t smaller(uint64_t a, uint64_t b) { return a < b ? a : b; }

/// Elements of tile `tile` of something that has `elements` in all.
OCCL_HOST_DEVICE constexpr uint64_t inTile(uint64_t elements, uint64_t tile,
                                           uint64_t tileElements) {
  uint64_t begin = tile * tileElements;
  return begin >= elements ? 0 : smaller(elements - begin, tileElements);
}

/// Walks the chunks of an instruction.
struct ChunkCursor {
  const Program &program;
  uint64_t chunk;        // of a part
  uint64_t position = 0; // elements from the first chunk's begin to this chunk's

  ChunkCursor(const Program &program, uint32_t extent) : program(program), chunk(extent) {}

  uint64_t size() const { return program.chunkBegins[chunk + 1] - program.chunkBegins[chunk]; }
  void next() {
    position += size();
    chunk = chunk + 1 == program.partChunks ? 0 : chunk + 1;
  }
};

inline uint64_t messageElements(const Program &program, const BoundInstruction &instruction,
                                uint64_t tile) {
  if (instruction.contiguous)
    return inTile(instruction.elements, tile, instruction.span);
  uint64_t total = 0;
  ChunkCursor cursor(program, instruction.extent);
  for (uint32_t i = 0; i < instruction.count; ++i, cursor.next())
    total += inTile(cursor.size(), tile, program.tileElements);
  return total;
}

} // namespace occl::interpreter::detail
