// How a runtime cuts chunks into tiles. Internal to compiler/cost.
#pragma once

#include "plan/model/chunking_of.h"
#include "plan/model/plan.h"

#include <algorithm>

namespace occl::cost {

/// In bytes: an element is a byte here, which makes no difference but in the last tile.
class Tiles {
public:
  Tiles(const plan::Plan &plan, uint64_t bytes, uint64_t messageBytes)
      : chunking(plan::chunkingOf(plan, bytes, 1)) {
    uint64_t largest = 1;
    for (const plan::Instruction &instruction : plan.instructions)
      largest = std::max<uint64_t>(largest, instruction.count);
    uint64_t chunk = std::max<uint64_t>(chunking.maxSize(), 1);
    uint64_t wanted = std::max<uint64_t>(messageBytes / largest, 1);
    number = (chunk + wanted - 1) / wanted;
    tileBytes = (chunk + number - 1) / number;
    // All chunks have so many full grains or one more, but for the end, which may be cut off.
    uint64_t grains = (bytes + chunking.grain - 1) / chunking.grain;
    smallest =
        std::min(grains / chunking.chunks * chunking.grain, chunking.size(chunking.chunks - 1));
  }

  uint64_t count() const { return number; }

  /// What an instruction moves of a tile, an operand.
  uint64_t bytesOf(const plan::Instruction &instruction, uint64_t tile) const {
    uint64_t begin = tile * tileBytes;
    if (begin + tileBytes <= smallest)
      return instruction.count * tileBytes;
    uint64_t total = 0;
    for (uint64_t k = 0; k < instruction.count; ++k) {
      uint64_t size = chunking.size((instruction.extent + k) % chunking.chunks);
      total += size <= begin ? 0 : std::min(size - begin, tileBytes);
    }
    return total;
  }

private:
  plan::Chunking chunking;
  uint64_t number = 1, tileBytes = 1, smallest = 0;
};

} // namespace occl::cost
