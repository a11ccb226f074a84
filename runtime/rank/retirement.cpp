// The part of admission that gives back what a sequence holds that has not been called for long:
// its announce cell, its pre-posted ring, and in the end all that is known of its id.
#include "runtime/rank/admission.h"

#include <algorithm>
#include <string>

namespace occl::daemon {

void Admission::setMostActive(size_t sequences) {
  std::lock_guard lock(mutex);
  mostActive = std::max<size_t>(1, sequences);
}

Status Admission::ensureCell(IdState &id) {
  using Activation = AnnounceCells::Activation;
  Activation activated = cells.activate(id);
  if (activated == Activation::NoCellFree) {
    constexpr size_t kStep = 512; // with the lock held; the next try goes on
    // The last resort: retire what is idle, and take cells back.
    retireIdle(kStep);
    recycleCells(kStep);
    activated = cells.activate(id);
  }
  if (activated == Activation::Done) {
    retireSome(id);
    return {};
  }
  std::string what = "an announce cell for " + describe(id) + ": ";
  if (id.cell)
    cells.retire(id); // if it does not come again
  if (core.fabric->network())
    return {StatusCode::InvalidArgument, what + "a communicator that spans machines has at most " +
                                             std::to_string(transport::Segment::kCells) + " ids"};
  if (activated == Activation::PeerLeaves)
    return nothingFree(what + "another rank is just giving back its own", "", "Wait a moment");
  return nothingFree(what + "all " + std::to_string(transport::Segment::kCells) + " are taken",
                     cells.describeRetired(), "Wait for a completion here or there");
}

/// Nothing of it is in flight on this rank, and it may retire: that of calls, in which all take
/// part, never does, nor does any between machines, whose cells nobody takes back.
bool Admission::isIdle(const IdState &id) const {
  return !core.fabric->network() && id.id != kCallSequence &&
         std::ranges::none_of(id.unreclaimed, [](const OpenInvocation *invocation) {
           return invocation && !invocation->finished.load(std::memory_order_acquire);
         });
}

/// `id` has just become active. Keeps few enough active, those that were called last; two steps for
/// each one that comes in. What is in flight stays.
void Admission::retireSome(const IdState &id) {
  for (int steps = 0; steps < 2 && cells.numActive() > mostActive; ++steps) {
    IdState &longest = *cells.leastRecentlyUsed();
    if (&longest == &id || !isIdle(longest))
      cells.use(longest);
    else
      retire(longest);
  }
  constexpr size_t kStep = 8; // more than come in
  recycleCells(kStep);
}

/// Of the `most` that were called longest ago.
void Admission::retireIdle(size_t most) {
  for (IdState *id = cells.leastRecentlyUsed(); id && most != 0; --most) {
    IdState *next = id->newer;
    if (isIdle(*id))
      retire(*id);
    id = next;
  }
}

void Admission::retire(IdState &id) {
  forgetPeers(id);
  cells.retire(id);
}

void Admission::recycleCells(size_t most) {
  cells.advance(
      most,
      [this](IdState &id) {
        for (OpenInvocation *invocation : id.unreclaimed)
          if (invocation && canReclaim(*invocation))
            reclaim(*invocation);
      },
      [this](IdState &id) { dropCell(id); });
}

void Admission::tidy() {
  constexpr size_t kStep = 256; // some tens of microseconds
  std::lock_guard lock(mutex);
  if (cells.hasRetired())
    recycleCells(kStep);
}

/// Nobody may rely on where the peers' rings lie once its cell can go. Its own ring stays as long
/// as its cell does: the others may come back to it.
void Admission::forgetPeers(IdState &id) {
  for (Atomic<uint64_t> &ring : id.peerRings)
    ring.store(0, std::memory_order_relaxed);
  id.ringsForgotten.fetch_add(1, std::memory_order_relaxed);
}

void Admission::dropCell(IdState &id) {
  // The ring's memory is free only with the cell, which says where it lies.
  if (id.ring.largest != 0)
    rings.release(id.ring.arenaOffset - arena.size(), id.ring.bytes());
  id.ring = {};
  dropIfUnused(id);
}

void Admission::dropIfUnused(IdState &id) {
  if (id.cell)
    return;
  if (lastFound == &id)
    lastFound = nullptr;
  core.device->board.removeRoom(core.place, id.counters.numBlocks());
  ids.erase(id.id);
}

} // namespace occl::daemon
