// From an MSCCL XML file to a plan.
#pragma once

#include "compiler/frontend/memory/ChunkSink.h"
#include "compiler/interchange/msccl/MscclXml.h"
#include "compiler/interchange/msccl/Reporter.h"
#include "plan/model/plan.h"
#include "plan/verify/verifier.h"

#include <functional>
#include <optional>
#include <vector>

namespace occl::interchange::msccl {

struct ImportOptions {
  /// Messages in flight on a connection; 2 for Simple, 8 for LL and LL128 if not given, as in the
  /// runtimes that the format was made for.
  std::optional<uint32_t> depth;
  /// Where broadcast and reduce start or end; the format does not say. Guessed if not given.
  std::optional<uint32_t> root;
  /// Gives the collective that the algorithm is said to implement, for the file's number of ranks
  /// and chunks of a buffer; nullopt after an error, which it has reported. Null: the collective
  /// that the file names.
  std::function<std::optional<frontend::ProgramInfo>(uint32_t, uint32_t)> postcondition;
};

using ImportedPostcondition = std::optional<frontend::ProgramInfo>;

/// How the collective lays out its buffers: what a plan says besides its instructions.
struct BufferLayout {
  std::string collective;
  bool hasPostcondition = true;
  uint32_t partChunks = 1;
  uint32_t partsOfBuffer = 1; // of the larger one of input and output
  uint32_t root = 0;
  bool outOfPlace = true, inPlace = false;
  std::vector<plan::RankPlan> ranks; // sizes and in-place offsets
};

/// The layout for a checked algorithm that implements `postcondition`, or what its file names if
/// there is none; nullopt after an error.
std::optional<BufferLayout> layOut(const Algorithm &algorithm, const ImportOptions &options,
                                   const ImportedPostcondition &postcondition, Reporter &reporter);

/// The instructions of a checked algorithm, with the postcondition of `postcondition`; not
/// verified. nullopt after an error.
std::optional<plan::Plan> emitPlan(const Algorithm &algorithm, const BufferLayout &layout,
                                   const ImportOptions &options,
                                   const ImportedPostcondition &postcondition, Reporter &reporter);

/// All of it: reads, checks, lays out and emits the file's algorithm, and proves the plan. nullopt
/// after errors, which are in `diagnostics`. `proved`, if not null, receives what verifyPlan found
/// out about the plan.
std::optional<plan::Plan> importAlgorithm(const frontend::SourceManager &sources,
                                          frontend::FileId file, const ImportOptions &options,
                                          frontend::DiagnosticEngine &diagnostics,
                                          std::vector<Warning> &warnings,
                                          plan::VerifyResult *proved = nullptr);

} // namespace occl::interchange::msccl
