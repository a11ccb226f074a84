// Where elaboration puts what a program does: keeps the interpreter of the language free of MLIR.
#pragma once

#include "compiler/frontend/diagnostics/SourceManager.h"

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

/// A number of the sink's own: what read, copy or reduce returned.
using ChunkHandle = uint32_t;

/// What is asked of the schedule of copies and reductions. Nothing of it changes what they compute.
struct Hints {
  int32_t channel = -1;
  int32_t parallel = 1;   // into how many parts the range is cut, moved side by side
  int32_t aggregate = -1; // transfers of a group that are neighbours are meant to be one message
  int32_t sendBlock = -1; // thread blocks of the sending and the receiving rank
  int32_t recvBlock = -1;

  bool operator==(const Hints &) const = default;
};

/// Called in the textual order of the program's execution. `place` is the expression that does it.
class ChunkSink {
public:
  virtual ~ChunkSink() = default;
  virtual ChunkHandle read(const ChunkRange &source, SourceRange place) = 0;
  virtual ChunkHandle copy(ChunkHandle source, const ChunkRange &destination,
                           SourceRange place) = 0;
  /// Reduces two or more operands from left to right.
  virtual ChunkHandle reduce(std::span<const ChunkHandle> sources, const ChunkRange &destination,
                             SourceRange place) = 0;
  /// For the copies and reductions that follow; at first none are asked for.
  virtual void useHints(const Hints &hints) = 0;
};

inline constexpr uint64_t kUnboundedBytes = ~uint64_t{0};

/// What is known of a program besides its operations. Vectors have one element a rank.
struct ProgramInfo {
  std::string name;
  std::string collective;
  bool isStandard = false; // the verifier of plans knows the collective's postcondition by its name
  uint32_t numRanks = 0;
  uint32_t partChunks = 0;
  uint32_t root = 0;
  std::vector<uint32_t> inputChunks, outputChunks;
  std::vector<uint32_t> scratchChunks; // of each rank
  std::vector<int32_t> inPlaceOffsets;
  bool outOfPlace = true;
  bool inPlace = false;
  std::vector<std::pair<std::string, int64_t>> parameters;
  /// Rank, output chunk, count, number of contributions, then rank and input chunk of each; empty
  /// if isStandard.
  std::vector<int32_t> requirements;
  std::string protocol = "simple"; // simple, ll or ll128
  /// Into how many parts the whole program is cut; the hints that the sink got contain it.
  uint32_t instances = 1;
  /// Sizes of a part that this version is for, the last one included.
  uint64_t minBytes = 0;
  uint64_t maxBytes = kUnboundedBytes;
  size_t numVersions = 1;
};

} // namespace occl::frontend
