// Which collective an MSCCL XML file means, and how large its buffers are.
#include "compiler/interchange/msccl/MscclImport.h"
#include "plan/collectives/collectives.h"
#include "support/suggestion.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace occl::interchange::msccl {

using frontend::DiagnosticCode;
using plan::OperandKind;

namespace {

using plan::StandardCollective;

/// The collectives that the format knows, those of plans that promise something by name, with all
/// the names that files have for them.
std::vector<std::pair<std::string_view, StandardCollective>> knownCollectives() {
  // Under both names, that of the runtimes and the plan's own.
  std::vector<std::pair<std::string_view, StandardCollective>> known;
  for (const plan::CollectiveDefinition &one : plan::kStandardCollectives)
    if (const auto collective = plan::standardCollectiveOf(one.name)) {
      for (std::string_view name : {mscclNameOf(*collective), std::string_view(one.name)})
        if (known.empty() || known.back().first != name)
          known.emplace_back(name, *collective);
    }
  return known;
}

bool uses(const Gpu &gpu, OperandKind buffer) {
  // Initial copies use both buffers.
  for (const ThreadBlock &block : gpu.threadBlocks)
    for (const Step &step : block.steps) {
      const StepShape &shape = shapeOf(step.type);
      if ((shape.readsSource && step.source.buffer == buffer) ||
          (shape.writesDestination && step.destination.buffer == buffer))
        return true;
    }
  return !gpu.copies.empty();
}

class LayoutFinder {
public:
  LayoutFinder(const Algorithm &algorithm, const ImportOptions &options,
               const ImportedPostcondition &postcondition, Reporter &reporter)
      : algorithm(algorithm), options(options), postcondition(postcondition), reporter(reporter) {}

  std::optional<BufferLayout> run() {
    // Scratch is as the file says; the other buffers as the collective says.
    layout.ranks.resize(algorithm.numGpus);
    for (size_t r = 0; r < layout.ranks.size(); ++r)
      layout.ranks[r].scratchChunks = algorithm.gpus[r].scratchChunks;
    if (!chooseModes())
      return std::nullopt;
    bool good = postcondition ? takePostcondition() : takeNamed();
    return good ? std::optional(std::move(layout)) : std::nullopt;
  }

private:
  bool chooseModes() {
    // An older file says only whether it is for calls in place.
    layout.inPlace = algorithm.inPlace;
    layout.outOfPlace = algorithm.outOfPlace.value_or(!algorithm.inPlace);
    if (layout.inPlace || layout.outOfPlace)
      return true;
    reporter.error(DiagnosticCode::ImportBadValue, algorithm.offset, "outofplace",
                   "the algorithm is neither for calls in place nor for calls out of place");
    return false;
  }

  bool takeNamed() {
    // A custom collective has no postcondition: everything but the result can be proved.
    if (algorithm.collective == "custom") {
      takeCustom();
      return true;
    }
    std::string name = algorithm.collective;
    // Suggestions come from all known names.
    std::vector<std::string_view> names;
    for (const auto &[known, collective] : knownCollectives()) {
      if (known == name)
        return takeKnown(collective);
      names.push_back(known);
    }
    std::string meant = support::suggest(name, names);
    frontend::Diagnostic &error = reporter.error(
        DiagnosticCode::ImportUnknownCollective, algorithm.offset, name.empty() ? "" : "coll",
        (name.empty() ? "the file does not say which collective this is"
                      : "what the collective '" + name + "' promises is not known") +
            "; say it with --implements" + support::didYouMean(meant));
    if (!meant.empty())
      error.fixIt(error.range, "coll=\"" + meant + "\"");
    return false;
  }

  bool takeKnown(StandardCollective collective) {
    // How many parts the larger buffer has: all of the collective's, or one.
    layout.collective = nameOf(collective);
    uint32_t n = algorithm.numGpus, perLoop = algorithm.chunksPerLoop;
    const plan::Parts one = {.numRanks = n, .part = 1};
    auto inputParts = static_cast<uint32_t>(inputSize(collective, one));
    auto outputParts = static_cast<uint32_t>(outputSize(collective, one));
    layout.partsOfBuffer = std::max(inputParts, outputParts);
    // Files without nchunksperloop: as many chunks as the largest buffer implies.
    for (const Gpu &gpu : algorithm.gpus) {
      if (algorithm.chunksPerLoop == 0)
        perLoop = std::max({perLoop, gpu.inputChunks / inputParts * layout.partsOfBuffer,
                            gpu.outputChunks / outputParts * layout.partsOfBuffer});
    }
    if (perLoop == 0 || perLoop % layout.partsOfBuffer != 0) {
      reporter.error(DiagnosticCode::ImportBadSizes, algorithm.offset, "nchunksperloop",
                     "a buffer of " + std::to_string(perLoop) + " chunks cannot be the " +
                         std::to_string(layout.partsOfBuffer) + " equal parts of " +
                         algorithm.collective);
      return false;
    }
    // From chunks of a loop, which is a whole buffer, to those of a part.
    layout.partChunks = perLoop / layout.partsOfBuffer;
    layout.root = chooseRoot(collective);
    for (uint32_t r = 0; r < n; ++r)
      if (!sizeRank(collective, r))
        return false;
    return true;
  }

  /// The file may leave out (0) a buffer that is not used, as where input and output are one.
  bool sizeRank(StandardCollective collective, uint32_t r) {
    // Against what the collective needs; 0 in the file is "as needed".
    const Gpu &gpu = algorithm.gpus[r];
    const plan::Parts parts = {algorithm.numGpus, layout.root, layout.partChunks};
    const auto input = static_cast<uint32_t>(inputSize(collective, parts));
    const auto output = static_cast<uint32_t>(outputSize(collective, parts));
    for (auto [attribute, has, needs] : {std::tuple("i_chunks", gpu.inputChunks, input),
                                         std::tuple("o_chunks", gpu.outputChunks, output)}) {
      if (has == 0 || has == needs)
        continue;
      reporter.error(DiagnosticCode::ImportBadSizes, gpu.offset, attribute,
                     "gpu " + std::to_string(r) + " has " + attribute + "=\"" +
                         std::to_string(has) + "\", but this " + algorithm.collective + " of " +
                         std::to_string(layout.partsOfBuffer * layout.partChunks) + " chunks has " +
                         std::to_string(needs) + " there");
      return false;
    }
    plan::RankPlan &rank = layout.ranks[r];
    rank.inputChunks = input;
    rank.outputChunks = output;
    // Only the root must have these; others have them if they use them.
    if (!needsInput(collective, parts, r) && !uses(gpu, OperandKind::Input))
      rank.inputChunks = 0;
    if (!needsOutput(collective, parts, r) && !uses(gpu, OperandKind::Output))
      rank.outputChunks = 0;
    rank.inPlaceOffset = static_cast<int32_t>(inPlaceOffset(collective, parts, r));
    return true;
  }

  /// The format does not say: the only rank that never receives (broadcast) or sends (reduce).
  uint32_t chooseRoot(StandardCollective collective) const {
    // --root is the user's word.
    if (options.root)
      return *options.root;
    if (!hasRoot(collective))
      return 0;
    // A rank that never sends, or never receives, is the only one at which a reduce ends or a
    // broadcast starts. If there are several, the proof will say which is wrong.
    std::vector<uint32_t> candidates;
    for (const Gpu &gpu : algorithm.gpus) {
      bool isActive = false;
      for (const ThreadBlock &block : gpu.threadBlocks)
        for (const Step &step : block.steps)
          isActive |=
              endsAtRoot(collective) ? shapeOf(step.type).sends : shapeOf(step.type).receives;
      if (!isActive)
        candidates.push_back(static_cast<uint32_t>(gpu.id));
    }
    return candidates.size() == 1 ? candidates[0] : 0;
  }

  /// Buffers of any size. A part is what all of them are multiples of.
  void takeCustom() {
    layout.collective = "custom";
    layout.hasPostcondition = false;
    warnOfAliases();
    // The greatest common divisor of all sizes is a part of all of them.
    uint32_t part = algorithm.chunksPerLoop;
    for (uint32_t r = 0; r < algorithm.numGpus; ++r) {
      const Gpu &gpu = algorithm.gpus[r];
      layout.ranks[r].inputChunks = gpu.inputChunks;
      layout.ranks[r].outputChunks = gpu.outputChunks;
      part = std::gcd(std::gcd(part, gpu.inputChunks), gpu.outputChunks);
    }
    layout.partChunks = std::max(part, 1u);
  }

  /// Nobody says where the input would lie in the output.
  void warnOfAliases() {
    if (layout.inPlace)
      reporter.warn(frontend::DiagnosticCode::ImportSeparate, algorithm.offset, "inplace",
                    "where the input of this collective lies in its output is not said: the plan "
                    "is for separate buffers only");
    layout.inPlace = false;
    layout.outOfPlace = true;
  }

  bool takePostcondition() {
    // What the collective of --implements says about sizes has to fit what the file uses.
    const frontend::ProgramInfo &promised = *postcondition;
    if (promised.numRanks != algorithm.numGpus)
      return rejectPostcondition(algorithm.offset, "ngpus",
                                 "it has " + std::to_string(promised.numRanks) +
                                     " ranks, the algorithm " + std::to_string(algorithm.numGpus));
    layout.collective = promised.collective;
    layout.partChunks = promised.partChunks;
    layout.root = promised.root;
    // A file that was written for in-place calls may rely on it.
    if (!promised.inPlace)
      warnOfAliases();
    uint32_t largest = 0;
    for (uint32_t r = 0; r < promised.numRanks; ++r) {
      const Gpu &gpu = algorithm.gpus[r];
      plan::RankPlan &rank = layout.ranks[r];
      rank.inputChunks = promised.inputChunks[r];
      rank.outputChunks = promised.outputChunks[r];
      rank.inPlaceOffset = promised.inPlaceOffsets[r];
      largest = std::max({largest, rank.inputChunks, rank.outputChunks});
      // Less than there is may be used, but not more.
      for (auto [attribute, has, needs] :
           {std::tuple("i_chunks", gpu.inputChunks, rank.inputChunks),
            std::tuple("o_chunks", gpu.outputChunks, rank.outputChunks)})
        if (has > needs)
          return rejectPostcondition(gpu.offset, attribute,
                                     "on rank " + std::to_string(r) + " it has " +
                                         std::to_string(needs) + " chunks there, the algorithm " +
                                         std::to_string(has));
    }
    layout.partsOfBuffer = std::max(1u, largest / layout.partChunks);
    return true;
  }

  bool rejectPostcondition(uint32_t offset, std::string_view attribute, const std::string &reason) {
    reporter.error(DiagnosticCode::ImportWrongPromise, offset, attribute,
                   "the collective '" + postcondition->collective +
                       "' does not fit this algorithm: " + reason);
    return false;
  }

  const Algorithm &algorithm;
  const ImportOptions &options;
  const ImportedPostcondition &postcondition;
  Reporter &reporter;
  BufferLayout layout;
};

} // namespace

std::optional<BufferLayout> layOut(const Algorithm &algorithm, const ImportOptions &options,
                                   const ImportedPostcondition &postcondition, Reporter &reporter) {
  return LayoutFinder(algorithm, options, postcondition, reporter).run();
}

} // namespace occl::interchange::msccl
