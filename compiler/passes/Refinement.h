// Where the parts of an op lie when every chunk of a program is cut into several.
#pragma once

#include "compiler/dialect/ProgramHeader.h"

#include <cstdint>

namespace occl::passes {

/// A range of one rank's buffer, in chunks.
struct ChunkRange {
  int32_t rank = 0;
  plan::OperandKind buffer = plan::OperandKind::Input;
  int64_t index = 0;
  int64_t count = 1;
};

enum class RefinedLayout : uint8_t {
  /// The pieces of a chunk stand together: chunk i is [i * factor, (i + 1) * factor).
  Interleaved,
  /// The first pieces of all chunks of a part stand together, then the second ones, and so on: the
  /// program happens `factor` times side by side, and its ranges stay ranges. Scratch is repeated
  /// as
  /// a whole. Parts are the unit because only whole parts have an order that users can see.
  Batched,
};

/// Every chunk becomes `factor` chunks. The header is that of the program before.
class Refinement {
public:
  Refinement(const dialect::ProgramHeader &header, int32_t factor, RefinedLayout layout)
      : header(header), factor(factor), layout(layout) {}

  /// Part `part` of `parts` of `range`; `parts` divides the factor, and is the factor if the layout
  /// is batched. The parts cover the range; the same part of two ranges of the same count has the
  /// same count.
  ChunkRange part(const ChunkRange &range, int32_t parts, int32_t part) const;

private:
  const dialect::ProgramHeader &header;
  int64_t factor;
  RefinedLayout layout;
};

/// Whether the program may be batched as far as its header is concerned: that it does the same with
/// all chunks of a part is then only a question of its ranges (staysInPart).
bool hasWholeParts(const dialect::ProgramHeader &header);

/// Whether `range` is scratch or within one part.
bool staysInPart(const dialect::ProgramHeader &header, const ChunkRange &range);

} // namespace occl::passes
