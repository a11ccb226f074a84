// Waits of ranks as sentences.
#include "runtime/observe/report/wait_report.h"

#include "runtime/control/records/pair_id.h"
#include "runtime/observe/report/wait_text.h"

namespace occl::insight {

using transport::WaitEdge;
using transport::WaitReason;

namespace {

/// Of a dependency: what the rank waits for itself.
std::string describeOwn(uint32_t thing) {
  return thing < transport::kFirstPartition
             ? "thread block " + std::to_string(thing)
             : "its program, to mark partition " +
                   std::to_string(thing - transport::kFirstPartition) + " as ready";
}

} // namespace

std::string describeWait(uint32_t rank, const WaitEdge &edge, const LookUp &lookUp,
                         const TickScale &scale, Ticks now) {
  // A dependency is a wait of the rank for itself.
  bool isOwn = edge.reason == WaitReason::Dependency;
  std::string text = "rank " + std::to_string(rank) + " waits for " +
                     (isOwn ? "itself (" + describeOwn(edge.thing)
                            : "rank " + std::to_string(edge.peer) + " (" + toString(edge.reason)) +
                     ") in ";
  // The id says whether it is a transfer, a partitioned one, or a collective.
  if (const auto pair = transport::pairOf(edge.collective)) {
    text += "transfer " + std::to_string(edge.ordinal) + " " + transport::describe(*pair);
  } else if (const auto partitioned = transport::partitionedPairOf(edge.collective)) {
    text += "epoch " + std::to_string(edge.ordinal) + " of a partitioned transfer " +
            transport::describe(*partitioned);
  } else {
    KnownCollective known = lookUp(edge.collective);
    text += "collective " + known.name + ", " +
            transport::describeInvocation(edge.collective, edge.ordinal) + ", " +
            known.describeRound(rank, edge.block) +
            describePosition(known.plan.get(), {rank, edge.block, edge.instruction});
  }
  if (edge.since != 0)
    text += ", for " + describeDuration(scale.nanoseconds(elapsed(edge.since, now)));
  return text;
}

std::string describeRanks(std::span<const uint32_t> ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size(); ++i)
    text += (i == 0 ? "" : i + 1 == ranks.size() ? " and " : ", ") + std::to_string(ranks[i]);
  return text;
}

std::string describeWaits(std::span<const RankReport> ranks, std::span<const MissingRanks> missing,
                          const LookUp &lookUp, Ticks now) {
  std::string text;
  TickScale scale;
  // Each rank has its waits, a note why it has none, or waits for nobody.
  for (uint32_t r = 0; r < ranks.size(); ++r) {
    for (const WaitEdge &edge : ranks[r].edges) {
      text += describeWait(r, edge, lookUp, scale, now);
      text += ranks[r].isFresh ? "\n" : "; it does not answer\n";
    }
    if (!ranks[r].note.empty())
      text += "rank " + std::to_string(r) + " " + ranks[r].note + "\n";
    else if (ranks[r].edges.empty())
      text += "rank " + std::to_string(r) + " waits for nobody\n";
  }
  // Invocations that some ranks have not submitted come last.
  for (const MissingRanks &invocation : missing)
    if (!invocation.ranks.empty())
      text += "collective " + lookUp(invocation.collective).name + ", " +
              transport::describeInvocation(invocation.collective, invocation.ordinal) +
              ": not submitted by " + describeRanks(invocation.ranks) + "\n";
  return text;
}

} // namespace occl::insight
