// Runs an algorithm for fixed parameters: from a resolved program to the chunks that it moves.
#pragma once

#include "compiler/frontend/memory/ChunkSink.h"
#include "compiler/frontend/memory/Observer.h"
#include "compiler/frontend/sema/DeclaredTopology.h"
#include "compiler/frontend/sema/Program.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace occl::frontend {

/// Enough for rings, which take three for each pair of ranks; so many, however few ranks there are.
constexpr uint64_t defaultMaxOps(uint64_t numRanks) {
  constexpr uint64_t kLeast = 4u << 20, kForEachPair = 4;
  return std::max(kLeast, kForEachPair * numRanks * numRanks);
}

struct ElaborationOptions {
  /// "name=value", one for each -D.
  std::vector<std::string> defines = {};
  /// Reads, copies and reductions that a program may consist of; without it defaultMaxOps().
  std::optional<uint64_t> maxOps = {};
  /// Which version of the algorithm: the one for this size, or else by number. A number that does
  /// not exist means the last one.
  std::optional<uint64_t> bytes = {};
  size_t version = 0;
  /// What the program runs on: what it may ask about, and where it may move chunks. Null: anywhere.
  const DeclaredTopology *topology = nullptr;
  /// Is told what variables and places are; may be null.
  Observer *observer = nullptr;
  /// Only what the algorithm's collective promises: the body is not executed, nothing is emitted,
  /// and the result has the requirements and no scratch.
  bool promiseOnly = false;
  /// For editors, which want an answer at once. Steps of the interpreter, instead of a multiple of
  /// maxOps; and chunks of all buffers together, of which a plan may have kMaxLocations.
  std::optional<uint64_t> maxSteps = {}, maxChunks = {};
};

/// Executes the algorithm of a program that was resolved without errors, hands every operation to
/// `sink`, and checks ranges, chunks, and the postcondition in each alias mode. nullopt if there
/// were errors; what was emitted is of no use then. Takes time linear in the operations and in the
/// chunks they move, and bounded by maxOps in any case.
std::optional<ProgramInfo> elaborate(const Program &program, const AlgorithmDecl &algorithm,
                                     const ElaborationOptions &options, SourceManager &sources,
                                     ChunkSink &sink, DiagnosticEngine &diagnostics);

} // namespace occl::frontend
