// Algorithms of the SCCL and TACCL synthesizers: which chunk is sent from where to where, step by
// step, without schedule. They become programs for the compiler's own passes.
#pragma once

#include "compiler/frontend/diagnostics/Diagnostics.h"
#include "compiler/frontend/memory/ChunkSink.h"

#include <optional>
#include <string>
#include <vector>

namespace occl::interchange::synthesis {

/// Chunk `address` goes from one rank to another. Chunks of one address are to be reduced.
struct Send {
  uint32_t address = 0, source = 0, target = 0;
  frontend::SourceRange place = {};
};

/// A contribution: the ranks that have it at the beginning and must have it at the end.
struct Chunk {
  uint32_t address = 0;
  uint32_t number = 0;                 // in the file
  std::vector<uint32_t> before, after; // ranks, ascending
};

struct Algorithm {
  std::string_view text; // of the file, as long as the sources live
  std::string name;
  std::string collective; // as the file calls it
  uint32_t numRanks = 0;
  std::vector<Chunk> chunks; // cut into as many as the instance says
  /// The sends of a step happen at once: each takes what its source has before the step.
  std::vector<std::vector<Send>> steps;
};

/// Where `path`, such as "collective.chunks[3].addr", leads to in a text, or as far as it does.
frontend::SourceRange placeInJson(std::string_view text, frontend::FileId file,
                                  std::string_view path);

/// Reads a JSON file of SCCL (`msccl_type`) or TACCL (`sccl_type`); nullopt after errors.
std::optional<Algorithm> parse(const frontend::SourceManager &sources, frontend::FileId file,
                               frontend::DiagnosticEngine &diagnostics);

/// Hands all reads, copies and reductions to `sink` and checks that they give what the
/// collective promises; nullopt after errors.
std::optional<frontend::ProgramInfo> emit(const Algorithm &algorithm, frontend::FileId file,
                                          frontend::ChunkSink &sink,
                                          frontend::DiagnosticEngine &diagnostics);

} // namespace occl::interchange::synthesis
