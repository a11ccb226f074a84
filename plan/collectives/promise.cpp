#include "plan/collectives/promise.h"

namespace occl::plan {

namespace {

std::string sizeError(uint32_t rank, const char *what, int64_t got, int64_t expected) {
  return "rank " + std::to_string(rank) + ": " + what + " is " + std::to_string(got) +
         ", expected " + std::to_string(expected);
}

} // namespace

std::string checkSizes(const Plan &plan, StandardCollective collective) {
  const Parts parts = partsOf(plan);
  const uint64_t input = inputSize(collective, parts), output = outputSize(collective, parts);
  for (uint32_t r = 0; r < plan.numRanks; ++r) {
    // Of rooted collectives the ranks that are not the root may give a buffer of the full size or
    // none: plans that use the space as scratch are as valid as those that do not.
    const RankPlan &rank = plan.ranks[r];
    const bool mayLackInput = !needsInput(collective, parts, r);
    const bool mayLackOutput = !needsOutput(collective, parts, r);
    const int64_t offset = inPlaceOffset(collective, parts, r);
    if (rank.inputChunks != input && !(mayLackInput && rank.inputChunks == 0))
      return sizeError(r, "inputChunks", rank.inputChunks, static_cast<int64_t>(input));
    if (rank.outputChunks != output && !(mayLackOutput && rank.outputChunks == 0))
      return sizeError(r, "outputChunks", rank.outputChunks, static_cast<int64_t>(output));
    // Checked last, since it says nothing to people as long as the sizes are wrong.
    if (rank.inPlaceOffset != offset)
      return sizeError(r, "inPlaceOffset", rank.inPlaceOffset, offset);
  }
  return "";
}

} // namespace occl::plan
