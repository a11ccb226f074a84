// The priority and age of an invocation that all ranks agree on, from what they announce.
#include "runtime/invocation/agreed_standing.h"

#include <algorithm>

namespace occl::daemon {

namespace {

/// The first rank from `r` on that has not announced the invocation.
uint32_t firstSilent(uint32_t r, const OpenInvocation &invocation, const Fabric &fabric) {
  for (; r < fabric.numRanks(); ++r) {
    const transport::AnnounceCell *cell = peerCell(*invocation.id, fabric, r);
    if (!cell || !cell->hasPublished(invocation.ordinal))
      break;
  }
  return r;
}

} // namespace

std::optional<scheduler::Standing> inheritedStanding(OpenInvocation &invocation,
                                                     const Fabric &fabric) {
  const uint32_t numRanks = fabric.numRanks();
  // Already placed as all ranks have it.
  if (invocation.announcedBelow.load(std::memory_order_relaxed) > numRanks)
    return std::nullopt;
  // One rank at each visit: a look may cost a cache miss.
  const uint32_t r = invocation.nextLook.load(std::memory_order_relaxed);
  invocation.nextLook.store((r + 1) % numRanks, std::memory_order_relaxed);
  const transport::AnnounceCell *cell = peerCell(*invocation.id, fabric, r);
  const transport::AnnounceRecord *record = cell ? cell->find(invocation.ordinal) : nullptr;
  if (!record)
    return std::nullopt;
  const int32_t priority = record->urgency().priority;
  // Of several executors that have seen it one moves the tasks.
  int32_t highest = invocation.highestPriority.load(std::memory_order_relaxed);
  if (priority <= highest || !invocation.highestPriority.compare_exchange_strong(
                                 highest, priority, std::memory_order_relaxed))
    return std::nullopt;
  scheduler::Standing standing;
  standing.priority = priority;
  return standing;
}

std::optional<scheduler::Standing> agreedStanding(OpenInvocation &invocation,
                                                  const Fabric &fabric) {
  const uint32_t numRanks = fabric.numRanks();
  // Placed for good.
  uint32_t below = invocation.announcedBelow.load(std::memory_order_relaxed);
  if (below > numRanks)
    return std::nullopt;
  // Ranks that have announced it are not asked again.
  below = firstSilent(below, invocation, fabric);
  bool isAnnounced = below == numRanks;
  invocation.announcedBelow.store(isAnnounced ? numRanks + 1 : below, std::memory_order_relaxed);
  if (!isAnnounced)
    return std::nullopt;
  // The highest priority counts; the age is that of the first rank that can still be asked.
  scheduler::Standing standing;
  for (uint32_t r = 0; r < numRanks; ++r) {
    auto urgency = peerCell(*invocation.id, fabric, r)->urgencyOf(invocation.ordinal);
    if (!urgency)
      continue;
    standing.priority =
        standing.isAnnounced ? std::max(standing.priority, urgency->priority) : urgency->priority;
    if (!standing.isAnnounced)
      standing.turn = urgency->turn;
    standing.isAnnounced = true;
  }
  return standing;
}

} // namespace occl::daemon
