#include "plan/collectives/collectives.h"

namespace occl::plan {

namespace {

uint64_t sizeOf(BufferSize size, const Parts &parts) {
  return size == BufferSize::Whole ? parts.part * parts.numRanks : parts.part;
}

} // namespace

std::optional<StandardCollective> collectiveOfName(std::string_view name) {
  for (uint32_t i = 0; i < kNumStandardCollectives; ++i)
    if (name == kStandardCollectives[i].name)
      return static_cast<StandardCollective>(i);
  return std::nullopt;
}

std::optional<StandardCollective> standardCollectiveOf(std::string_view name) {
  const auto collective = collectiveOfName(name);
  if (collective && definitionOf(*collective).promise == Promise::Named)
    return collective;
  return std::nullopt;
}

bool hasRoot(StandardCollective collective) {
  const CollectiveDefinition &of = definitionOf(collective);
  return of.inputOf == Holder::Root || of.outputOf == Holder::Root;
}

bool isReduction(StandardCollective collective) {
  return definitionOf(collective).result == Result::Reduced;
}

bool hasManyParts(StandardCollective collective) {
  const CollectiveDefinition &of = definitionOf(collective);
  return of.input == BufferSize::Whole || of.output == BufferSize::Whole;
}

bool needsInput(StandardCollective collective, const Parts &parts, uint32_t rank) {
  return definitionOf(collective).inputOf == Holder::All || rank == parts.root;
}

bool needsOutput(StandardCollective collective, const Parts &parts, uint32_t rank) {
  return definitionOf(collective).outputOf == Holder::All || rank == parts.root;
}

uint64_t inputSize(StandardCollective collective, const Parts &parts) {
  return sizeOf(definitionOf(collective).input, parts);
}

uint64_t outputSize(StandardCollective collective, const Parts &parts) {
  return sizeOf(definitionOf(collective).output, parts);
}

int64_t inPlaceOffset(StandardCollective collective, const Parts &parts, uint32_t rank) {
  const CollectiveDefinition &of = definitionOf(collective);
  // In chunks of the rank's part: where the output has all parts (all-gather), the input lies at
  // the own one of them; where the input has (reduce-scatter), it is the other way round.
  const auto own = static_cast<int64_t>(rank * parts.part);
  if (of.input == of.output)
    return 0;
  return of.output == BufferSize::Whole ? own : -own;
}

std::optional<Goal> goalOf(StandardCollective collective, const Parts &parts, uint32_t rank,
                           uint64_t index) {
  const CollectiveDefinition &of = definitionOf(collective);
  if (!needsOutput(collective, parts, rank))
    return std::nullopt;
  const bool isWhole = of.output == BufferSize::Whole;
  // A collective that cuts up its input (reduce-scatter, scatter) gives rank r the part number r.
  const uint64_t ownPart = of.input == BufferSize::Whole ? rank * parts.part : 0;
  // One that puts parts side by side has the same chunk of each contributor's part in each of them.
  const uint64_t from = ownPart + (isWhole ? index % parts.part : index);
  if (of.result == Result::Reduced)
    return Goal{true, 0, from};
  return Goal{false, isWhole ? static_cast<uint32_t>(index / parts.part) : parts.root, from};
}

} // namespace occl::plan
