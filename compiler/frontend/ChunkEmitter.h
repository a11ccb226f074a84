// Where elaboration puts what a program does: keeps the interpreter of the language free of MLIR.
#pragma once

#include "compiler/frontend/SourceManager.h"

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace occl::frontend {

enum class BufferKind : uint8_t { Input, Output, Scratch };

/// `count` chunks of a rank's buffer. Named scratches lie one behind the other in the rank's
/// scratch buffer.
struct ChunkRange {
  uint32_t rank = 0;
  BufferKind buffer = BufferKind::Input;
  uint32_t index = 0;
  uint32_t count = 0;
};

/// A value of the emitter's own: what read, copy or reduce returned.
using ChunkHandle = void *;

/// Called in the textual order of the program's execution. `place` is the expression that does it.
class ChunkEmitter {
public:
  virtual ~ChunkEmitter() = default;
  virtual ChunkHandle read(const ChunkRange &source, SourceRange place) = 0;
  virtual ChunkHandle copy(ChunkHandle source, const ChunkRange &destination,
                           SourceRange place) = 0;
  /// Folds two or more operands from left to right.
  virtual ChunkHandle reduce(std::span<const ChunkHandle> sources, const ChunkRange &destination,
                             SourceRange place) = 0;
};

/// What is known of a program besides its operations. Vectors have one element a rank.
struct ProgramInfo {
  std::string name;
  std::string collective;
  bool isStandard = false; // the verifier of plans knows the collective's postcondition by its name
  uint32_t numRanks = 0;
  uint32_t partChunks = 0;
  uint32_t root = 0;
  std::vector<uint32_t> inputChunks, outputChunks;
  uint32_t scratchChunks = 0; // the same on all ranks
  std::vector<int32_t> inPlaceOffsets;
  bool outOfPlace = true;
  bool inPlace = false;
  std::vector<std::pair<std::string, int64_t>> parameters;
  /// Rank, output chunk, count, number of contributions, then rank and input chunk of each; empty
  /// if isStandard.
  std::vector<int32_t> requirements;
};

} // namespace occl::frontend
