#include "test/faults/shared_files.h"

#include "runtime/control/records/segment.h"

#include <cinttypes>
#include <cstdio>
#include <cstring>

namespace occl::faults {

std::vector<Piece> listPieces(const char *name) {
  std::vector<Piece> pieces;
  std::FILE *maps = std::fopen("/proc/self/maps", "r");
  char line[512];
  while (maps && std::fgets(line, sizeof line, maps)) {
    uint64_t begin = 0, end = 0, offset = 0, file = 0;
    char access[5] = {};
    if (std::sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*s %" SCNu64, &begin, &end,
                    access, &offset, &file) == 5 &&
        std::strstr(line, name))
      pieces.push_back(
          {reinterpret_cast<std::byte *>(begin), end - begin, offset, file, access[1] == 'w'});
  }
  if (maps)
    std::fclose(maps);
  return pieces;
}

uint32_t rankOf(uint64_t file) {
  for (const Piece &piece : listPieces("memfd:occl-segment"))
    if (piece.file == file && piece.offset == 0) {
      const auto &header = *reinterpret_cast<const transport::SegmentHeader *>(piece.begin);
      return header.magic == transport::SegmentHeader::kMagic ? header.rank : ~0u;
    }
  return ~0u;
}

} // namespace occl::faults
