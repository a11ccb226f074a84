#include "tools/occl-run/reference.h"

#include "runtime/exec/reduce/reference.h"
#include "tools/occl-run/elements.h"

#include <cmath>

namespace occl::run {

Reference::Reference(const plan::Plan &plan, uint64_t count, occlDataType_t type, occlRedOp_t op,
                     uint32_t seed)
    : plan(plan), chunking(plan::chunkingOf(plan, count, elementBytes(type))), count(count),
      type(type), op(op), seed(seed) {}

uint64_t Reference::inputElements(uint32_t rank) const {
  return chunking.beginInBuffer(plan.ranks[rank].inputChunks);
}

uint64_t Reference::outputElements(uint32_t rank) const {
  return chunking.beginInBuffer(plan.ranks[rank].outputChunks);
}

int64_t Reference::inPlaceOffset(uint32_t rank) const {
  int32_t chunks = plan.ranks[rank].inPlaceOffset;
  auto elements =
      static_cast<int64_t>(chunking.beginInBuffer(static_cast<uint32_t>(std::abs(chunks))));
  return chunks < 0 ? -elements : elements;
}

double Reference::input(uint32_t rank, uint64_t element) const {
  // A hash of element and rank: any element can be computed by itself, in any order, and neighbours
  // differ. Multipliers are those of SplitMix64.
  uint64_t hash = (element * 0x9e3779b97f4a7c15ull + rank * 0xbf58476d1ce4e5b9ull + seed) *
                  0x94d049bb133111ebull;
  hash ^= hash >> 32;
  const bool isSigned = !isUnsigned(type);
  // All inputs are small integers, so that results are exact in every type and any order of
  // operations gives the same bits.
  if (op == occlProd) // at most two ranks contribute more than a sign
    return (hash & 1 && isSigned ? -1.0 : 1.0) * (element % plan.numRanks / 2 == rank / 2 ? 2 : 1);
  const bool isSmall = type == occlFloat8E4m3 || type == occlFloat8E5m2;
  // Of inputs that are divided: what the number of ranks divides, or one alone.
  if (op == occlAvg && isSmall)
    return element % plan.numRanks == rank ? static_cast<double>(hash % 3) - 1 : 0;
  if (op == occlAvg && isFloating(type))
    return (static_cast<double>(hash % 5) - 2) * plan.numRanks;
  // The integers of 8-bit floats end at 8.
  if (isSmall)
    return (rank + element) % plan.numRanks < 8 ? static_cast<double>(hash % 3) - 1 : 0;
  return static_cast<double>(hash % 5) - (isSigned ? 2 : 0);
}

double Reference::combine(const std::vector<double> &values) const {
  // In double, which holds all the results exactly.
  double result = values.empty() ? 0 : values.front();
  for (size_t i = 1; i < values.size(); ++i)
    result = reference::reduce(op, result, values[i]);
  return op == occlAvg ? averageOf(result) : result;
}

double Reference::averageOf(double sum) const {
  if (type == occlUint8) // the sum wraps before it is divided
    sum = static_cast<double>(static_cast<uint64_t>(sum) & 0xff);
  if (type == occlInt8)
    sum = static_cast<double>(static_cast<int8_t>(static_cast<int64_t>(sum)));
  double average = sum / static_cast<double>(plan.numRanks);
  return isFloating(type) ? average : std::trunc(average);
}

double Reference::overAllRanks(uint64_t element) const {
  std::vector<double> values(plan.numRanks);
  for (uint32_t rank = 0; rank < plan.numRanks; ++rank)
    values[rank] = input(rank, element);
  return combine(values);
}

std::optional<double> Reference::standardOutput(plan::StandardCollective collective, uint32_t rank,
                                                uint64_t element) const {
  const auto goal = goalOf(collective, {plan.numRanks, plan.root, count}, rank, element);
  if (!goal)
    return std::nullopt;
  return goal->ofAllRanks ? overAllRanks(goal->index) : input(goal->rank, goal->index);
}

std::vector<std::optional<double>> Reference::requiredOutput(uint32_t rank) const {
  // Elements that no requirement names stay without a value, and are not compared.
  std::vector<std::optional<double>> result(outputElements(rank));
  for (const plan::Requirement &requirement : plan.requirements) {
    if (requirement.rank != rank)
      continue;
    auto contributions = plan.contributionsOf(requirement);
    // Chunk i of the requirement, with the contributions' chunk i: they have the same size.
    for (uint32_t i = 0; i < requirement.count; ++i) {
      const uint64_t begin = chunking.beginInBuffer(requirement.outputChunk + i);
      const uint64_t end = chunking.beginInBuffer(requirement.outputChunk + i + 1);
      for (uint64_t element = begin; element < end; ++element) {
        std::vector<double> values;
        for (const plan::Contribution &from : contributions)
          values.push_back(
              input(from.rank, chunking.beginInBuffer(from.chunk + i) + element - begin));
        result[element] = values.size() == 1 ? values[0] : combine(values);
      }
    }
  }
  return result;
}

std::vector<std::optional<double>> Reference::output(uint32_t rank) const {
  const auto standard = plan::standardCollectiveOf(plan.collective);
  if (!standard)
    return requiredOutput(rank);
  std::vector<std::optional<double>> result(outputElements(rank));
  for (uint64_t element = 0; element < result.size(); ++element)
    result[element] = standardOutput(*standard, rank, element);
  return result;
}

} // namespace occl::run
