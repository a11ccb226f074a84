// Which files of shared memory this process maps, and what it may write of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace occl::faults {

/// A mapping, or the part of one that has one protection.
struct Piece {
  std::byte *begin = nullptr;
  uint64_t bytes = 0;
  uint64_t offset = 0; // in the file
  uint64_t file = 0;   // inode
  bool isWritable = false;
};

/// Of the files whose names contain `name`, as /proc/self/maps has them.
std::vector<Piece> listPieces(const char *name);

/// Of a file that is a rank's segment, mapped here: that rank. ~0 if it is not.
uint32_t rankOf(uint64_t file);

} // namespace occl::faults
