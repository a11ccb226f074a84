#include "compiler/passes/Refinement.h"

#include "llvm/ADT/STLExtras.h"

using namespace occl;
using namespace occl::passes;
using plan::OperandKind;

ChunkRange Refinement::part(const ChunkRange &range, int32_t parts, int32_t part) const {
  ChunkRange result = range;
  if (layout == RefinedLayout::Interleaved) {
    result.count = range.count * factor / parts;
    result.index = range.index * factor + part * result.count;
    return result;
  }
  int64_t period =
      range.buffer == OperandKind::Scratch ? header.scratchChunks[range.rank] : header.partChunks;
  int64_t first = range.index / period * period;
  result.index = first * factor + part * period + (range.index - first);
  return result;
}

bool passes::hasWholeParts(const dialect::ProgramHeader &header) {
  auto isWhole = [&](int32_t chunks) { return chunks % header.partChunks == 0; };
  if (!llvm::all_of(header.inputChunks, isWhole) || !llvm::all_of(header.outputChunks, isWhole) ||
      !llvm::all_of(header.inPlaceOffsets, isWhole))
    return false;
  // What a user's own collective requires may treat the chunks of a part differently.
  for (llvm::ArrayRef<int32_t> rest = header.requirements; !rest.empty();) {
    llvm::ArrayRef<int32_t> contributions = rest.slice(4, 2 * static_cast<size_t>(rest[3]));
    if (!isWhole(rest[1]) || !isWhole(rest[2]))
      return false;
    for (size_t i = 1; i < contributions.size(); i += 2)
      if (!isWhole(contributions[i]))
        return false;
    rest = rest.drop_front(4 + contributions.size());
  }
  return true;
}

bool passes::staysInPart(const dialect::ProgramHeader &header, const ChunkRange &range) {
  return range.buffer == OperandKind::Scratch ||
         range.index / header.partChunks == (range.index + range.count - 1) / header.partChunks;
}
