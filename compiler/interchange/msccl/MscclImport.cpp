#include "compiler/interchange/msccl/MscclImport.h"

#include "compiler/interchange/common/Annotate.h"
#include "compiler/interchange/common/SourceHash.h"
#include "compiler/interchange/msccl/MscclParse.h"
#include "plan/io/printer.h"
#include "plan/model/limits.h"
#include "plan/verify/verifier.h"

#include <algorithm>

namespace occl::interchange::msccl {

using frontend::DiagnosticCode;

namespace {

/// Sums that bound the memory of what follows; verifyPlan would refuse the plan anyway.
bool checkTotals(const plan::Plan &plan, uint32_t offset, Reporter &reporter) {
  // In 64 bits; the plan's shape is checked by the verifier, later.
  uint64_t chunks = 0, accesses = 0;
  for (const plan::RankPlan &rank : plan.ranks)
    chunks += uint64_t{rank.inputChunks} + rank.outputChunks + rank.scratchChunks;
  for (const plan::Instruction &instruction : plan.instructions)
    accesses += uint64_t{instruction.count} *
                (uint64_t{instruction.numSources} + instruction.numDestinations);
  std::string what;
  if (chunks > plan::limits::kMaxTotalChunks)
    what = "all buffers together have " + std::to_string(chunks) + " chunks, allowed are " +
           std::to_string(plan::limits::kMaxTotalChunks);
  else if (accesses > plan::limits::kMaxChunkAccesses)
    what = "all steps together access " + std::to_string(accesses) + " chunks, allowed are " +
           std::to_string(plan::limits::kMaxChunkAccesses);
  if (what.empty())
    return true;
  reporter.error(DiagnosticCode::ImportTooLarge, offset, what);
  return false;
}

/// Chunks of the largest buffer.
uint32_t chunksOf(const Algorithm &algorithm) {
  uint32_t chunks = algorithm.chunksPerLoop;
  for (const Gpu &gpu : algorithm.gpus)
    chunks = std::max({chunks, gpu.inputChunks, gpu.outputChunks});
  return chunks;
}

/// The element that a plan's location points to; what concerns the whole plan is at `fallback`.
frontend::SourceRange rangeOf(const plan::Plan &plan, uint32_t location, uint32_t fallback,
                              const frontend::SourceManager &sources, frontend::FileId file) {
  if (location >= plan.locations.size())
    return elementRange(sources, file, fallback);
  const plan::Location &place = plan.locations[location];
  std::string_view line = sources.lineText(file, place.line);
  auto offset = static_cast<uint32_t>(line.data() - sources.text(file).data()) + place.column - 1;
  return elementRange(sources, file, offset);
}

void report(const plan::Plan &plan, const plan::VerifyError &error, uint32_t fallback,
            const frontend::SourceManager &sources, frontend::FileId file,
            frontend::DiagnosticEngine &diagnostics) {
  // The verifier's message, with the place in words of the plan, and its code; the range is the
  // element of the file.
  std::string text = error.message;
  if (error.place)
    text = plan::describePlace(*error.place) + ": " + text;
  // Only if it claims both modes it matters which.
  if (error.mode && plan.inPlace && plan.outOfPlace)
    text = std::string(*error.mode == plan::AliasMode::InPlace ? "in place, " : "out of place, ") +
           text;
  text += " (" + plan::nameOf(error.code) + ")";
  frontend::Diagnostic &diagnostic =
      diagnostics.error(DiagnosticCode::ImportWrongPlan,
                        rangeOf(plan, error.location, fallback, sources, file), text);
  // Witnesses are notes at their own elements.
  for (const plan::Note &note : error.witness)
    diagnostic.note(note.location < plan.locations.size()
                        ? rangeOf(plan, note.location, fallback, sources, file)
                        : frontend::SourceRange{},
                    note.text);
}

/// What is wrong with the result, in terms of contributions: the marks of last reductions are the
/// importer's own, and say nothing to the author of the file.
plan::VerifyResult withoutMarks(plan::Plan plan, plan::VerifyResult result) {
  for (plan::Instruction &instruction : plan.instructions)
    instruction.final = false;
  plan::VerifyResult plain = plan::verifyPlan(plan);
  bool isPlainer = plain.error && plain.error->message.find("marked final") == std::string::npos;
  return isPlainer ? plain : result;
}

/// Proves the plan. Messages of Simple are fenced in the runtimes that the format was made for:
/// where the algorithm counts on that, the connections say so.
plan::VerifyResult prove(plan::Plan &plan) {
  // As it is; then without marks of final reductions; then with ordered connections.
  plan::VerifyResult result = plan::verifyPlan(plan);
  if (!result && result.error->proof() == plan::Proof::Postcondition)
    return withoutMarks(plan, std::move(result));
  // Only races may go away by ordering messages, and only with Simple.
  if (result || result.error->proof() != plan::Proof::Race ||
      plan.protocol != plan::Protocol::Simple)
    return result;
  plan::Plan ordered = plan;
  for (plan::Connection &connection : ordered.connections)
    connection.isOrdered = true;
  plan::VerifyResult again = plan::verifyPlan(ordered);
  if (!again)
    // The error without ordering says more.
    return result;
  plan = std::move(ordered);
  return again;
}

} // namespace

std::optional<plan::Plan> importAlgorithm(const frontend::SourceManager &sources,
                                          frontend::FileId file, const ImportOptions &options,
                                          frontend::DiagnosticEngine &diagnostics,
                                          std::vector<Warning> &warnings,
                                          plan::VerifyResult *proved) {
  // Each stage may report several mistakes, and ends the import.
  std::optional<Algorithm> algorithm = parseAlgorithm(sources, file, diagnostics, warnings);
  Reporter reporter(sources, file, diagnostics, warnings);
  if (!algorithm || !checkAlgorithm(*algorithm, reporter))
    return std::nullopt;
  ImportedPostcondition postcondition;
  // What is to be proved: by --implements, or what the file names.
  if (options.postcondition) {
    postcondition = options.postcondition(algorithm->numGpus, std::max(1u, chunksOf(*algorithm)));
    if (!postcondition)
      return std::nullopt;
  }
  // Sizes, modes and the root follow from both.
  std::optional<BufferLayout> layout = layOut(*algorithm, options, postcondition, reporter);
  if (!layout)
    return std::nullopt;
  // Instructions, then what the file does not say (annotate), then the proof.
  std::optional<plan::Plan> plan = emitPlan(*algorithm, *layout, options, postcondition, reporter);
  if (!plan || !checkTotals(*plan, algorithm->offset, reporter))
    return std::nullopt;
  plan->sourceHash = hashOf(sources.text(file), plan->depth, plan->root, plan->collective);
  annotate(*plan);
  plan::VerifyResult result = prove(*plan);
  if (!result) {
    report(*plan, *result.error, algorithm->offset, sources, file, diagnostics);
    return std::nullopt;
  }
  if (proved)
    *proved = std::move(result);
  return plan;
}

} // namespace occl::interchange::msccl
