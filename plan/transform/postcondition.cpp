#include "plan/transform/postcondition.h"

namespace occl::plan {

namespace {

std::string number(uint64_t value) { return std::to_string(value); }

support::Status checkBuffers(const Plan &plan, const Plan &model, uint32_t factor) {
  for (uint32_t r = 0; r < plan.numRanks; ++r) {
    const RankPlan &rank = plan.ranks[r], &expected = model.ranks[r];
    // In the other's collective a chunk is `factor` chunks here: the number of parts must be the
    // same, not the number of chunks.
    uint64_t input = uint64_t{expected.inputChunks} * factor;
    uint64_t output = uint64_t{expected.outputChunks} * factor;
    if (rank.inputChunks == input && rank.outputChunks == output)
      continue;
    return support::Status::error("rank " + number(r) + " of '" + plan.name + "' has " +
                                  number(rank.inputChunks) + " chunks of input and " +
                                  number(rank.outputChunks) + " of output; " + model.collective +
                                  " has " + number(input) + " and " + number(output));
  }
  return {};
}

support::Status checkSameShape(const Plan &plan, const Plan &model) {
  // From the general to the particular: each message makes sense only if those before do not apply.
  if (!model.hasPostcondition)
    return support::Status::error("'" + model.name +
                                  "' has no postcondition to prove anything against");
  if (plan.numRanks != model.numRanks)
    return support::Status::error("'" + plan.name + "' is for " + number(plan.numRanks) +
                                  " ranks, " + model.collective + " for " + number(model.numRanks) +
                                  ": give both the same number");
  if (plan.partChunks % model.partChunks != 0)
    return support::Status::error(
        "'" + plan.name + "' cuts a part into " + number(plan.partChunks) + " chunks, " +
        model.collective + " into " + number(model.partChunks) + ", which does not divide that");
  // Valid for some mode in common, or nothing would be left to be proved.
  if (!(plan.outOfPlace && model.outOfPlace) && !(plan.inPlace && model.inPlace))
    return support::Status::error("one of '" + plan.name + "' and " + model.collective +
                                  " is for in place only, the other one for out of place only");
  return checkBuffers(plan, model, plan.partChunks / model.partChunks);
}

/// Whether the requirement speaks of whole parts, so that it does not matter how they are cut.
bool isOfWholeParts(const Plan &plan, const Requirement &requirement) {
  uint32_t part = plan.partChunks;
  bool isWhole = requirement.outputChunk % part == 0 && requirement.count % part == 0;
  for (const Contribution &contribution : plan.contributionsOf(requirement))
    isWhole = isWhole && contribution.chunk % part == 0;
  return isWhole;
}

} // namespace

support::Status adoptPostcondition(Plan &plan, const Plan &model) {
  // Neither plan is verified yet, so even the arrays need not have the sizes that the header
  // claims.
  if (plan.ranks.size() != plan.numRanks || model.ranks.size() != model.numRanks ||
      model.partChunks == 0)
    return support::Status::error("'" + plan.name + "' or '" + model.name + "' is no plan");
  if (support::Status status = checkSameShape(plan, model); !status)
    return status;
  uint32_t factor = plan.partChunks / model.partChunks;
  // The promise is the model's; of the modes and sizes that a plan is valid for, both have to
  // agree.
  plan.collective = model.collective;
  plan.root = model.root;
  plan.hasPostcondition = true;
  plan.outOfPlace = plan.outOfPlace && model.outOfPlace;
  plan.inPlace = plan.inPlace && model.inPlace;
  plan.uniformChunks = plan.uniformChunks || model.uniformChunks;
  for (uint32_t r = 0; r < plan.numRanks; ++r)
    // In chunks, as all offsets; the sizes were compared above.
    plan.ranks[r].inPlaceOffset =
        static_cast<int32_t>(int64_t{model.ranks[r].inPlaceOffset} * factor);
  plan.requirements = model.requirements;
  plan.contributions = model.contributions;
  // A requirement of chunks [c, c + n) becomes one of the finer chunks [c * factor, (c + n) *
  // factor). They hold the same bytes only as long as all chunks have the same size, unless the
  // requirement is about whole parts, whose bounds do not depend on how they are cut.
  for (Requirement &requirement : plan.requirements) {
    if (factor > 1 && !isOfWholeParts(model, requirement))
      plan.uniformChunks = true;
    requirement.outputChunk *= factor;
    requirement.count *= factor;
  }
  for (Contribution &contribution : plan.contributions)
    contribution.chunk *= factor;
  return {};
}

} // namespace occl::plan
