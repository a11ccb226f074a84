#include "plan/model/collective.h"

#include <array>

namespace occl::plan {

namespace {

constexpr std::array<std::string_view, 6> kNames = {"allreduce", "allgather", "reducescatter",
                                                    "broadcast", "reduce",    "alltoall"};

/// The buffers of one rank, in chunks.
struct Sizes {
  uint64_t input, output;
  int64_t inPlaceOffset;
  bool mayLackInput, mayLackOutput;
};

Sizes sizesOf(const Plan &plan, StandardCollective collective, uint32_t rank) {
  uint64_t part = plan.partChunks, whole = part * plan.numRanks;
  auto offset = static_cast<int64_t>(rank * part);
  bool isRoot = rank == plan.root;
  switch (collective) {
  case StandardCollective::AllReduce:
    return {part, part, 0, false, false};
  case StandardCollective::AllGather:
    return {part, whole, offset, false, false};
  case StandardCollective::ReduceScatter:
    return {whole, part, -offset, false, false};
  case StandardCollective::Broadcast:
    return {part, part, 0, !isRoot, false};
  case StandardCollective::Reduce:
    return {part, part, 0, false, !isRoot};
  case StandardCollective::AllToAll:
    return {whole, whole, 0, false, false};
  }
  return {};
}

std::string sizeError(uint32_t rank, const char *what, int64_t got, int64_t expected) {
  return "rank " + std::to_string(rank) + ": " + what + " is " + std::to_string(got) +
         ", expected " + std::to_string(expected);
}

} // namespace

std::optional<StandardCollective> standardCollectiveOf(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i)
    if (kNames[i] == name)
      return static_cast<StandardCollective>(i);
  return std::nullopt;
}

std::string checkSizes(const Plan &plan, StandardCollective collective) {
  for (uint32_t r = 0; r < plan.numRanks; ++r) {
    const RankPlan &rank = plan.ranks[r];
    Sizes sizes = sizesOf(plan, collective, r);
    if (rank.inputChunks != sizes.input && !(sizes.mayLackInput && rank.inputChunks == 0))
      return sizeError(r, "inputChunks", rank.inputChunks, static_cast<int64_t>(sizes.input));
    if (rank.outputChunks != sizes.output && !(sizes.mayLackOutput && rank.outputChunks == 0))
      return sizeError(r, "outputChunks", rank.outputChunks, static_cast<int64_t>(sizes.output));
    if (rank.inPlaceOffset != sizes.inPlaceOffset)
      return sizeError(r, "inPlaceOffset", rank.inPlaceOffset, sizes.inPlaceOffset);
  }
  return "";
}

std::optional<Goal> goalOf(const Plan &plan, StandardCollective collective, uint32_t rank,
                           uint32_t chunk) {
  uint32_t part = plan.partChunks;
  switch (collective) {
  case StandardCollective::AllReduce:
    return Goal{true, {0, chunk}};
  case StandardCollective::AllGather:
    return Goal{false, {chunk / part, chunk % part}};
  case StandardCollective::ReduceScatter:
    return Goal{true, {0, rank * part + chunk}};
  case StandardCollective::Broadcast:
    return Goal{false, {plan.root, chunk}};
  case StandardCollective::Reduce:
    if (rank != plan.root)
      return std::nullopt;
    return Goal{true, {0, chunk}};
  case StandardCollective::AllToAll:
    return Goal{false, {chunk / part, rank * part + chunk % part}};
  }
  return std::nullopt;
}

} // namespace occl::plan
