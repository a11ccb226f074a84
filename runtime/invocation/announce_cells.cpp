// The life of announce cells: taken, retired, and given back in steps.
#include "runtime/invocation/announce_cells.h"

#include "runtime/control/records/pair_id.h"
#include "runtime/sync/thread.h"

#include <algorithm>

namespace occl::daemon {

using transport::CellLife;
using transport::CellPhase;

AnnounceCells::AnnounceCells(const Fabric &fabric)
    : fabric(fabric), owner(fabric.own().announceTable()) {
  for (uint32_t r = 0; r < fabric.numRanks(); ++r)
    if (r != fabric.rank())
      peers.push_back(r);
}

AnnounceCells::Activation AnnounceCells::activate(IdState &id) {
  // A sequence that comes back goes on with its cell.
  if (id.cell)
    id.cell->enter(CellPhase::Active);
  else
    id.cell = owner.take(id.id);
  if (!id.cell)
    return Activation::NoCellFree;
  // Dekker with step(): Active is stored before the looks at cells of others.
  threadFence(std::memory_order_seq_cst);
  constexpr int kMostLooks = 100; // a peer leaves in a few steps, unless it is stopped
  for (int look = 0; !id.isCounted && !beginToCount(id); ++look) {
    if (look == kMostLooks)
      return Activation::PeerLeaves;
    yieldProcessor();
  }
  id.isActive = true;
  link(id);
  return Activation::Done;
}

void AnnounceCells::link(IdState &id) {
  id.newer = nullptr;
  id.older = newest;
  (newest ? newest->newer : oldest) = &id;
  newest = &id;
  ++active;
}

void AnnounceCells::unlink(IdState &id) {
  (id.newer ? id.newer->older : newest) = id.older;
  (id.older ? id.older->newer : oldest) = id.newer;
  --active;
}

void AnnounceCells::moveToFront(IdState &id) {
  unlink(id);
  link(id);
}

/// The cell is Active. False if a peer may be about to give its own back.
bool AnnounceCells::beginToCount(IdState &id) {
  uint64_t first = 0;
  for (uint32_t peer : peers) {
    auto theirs = fabric.of(peer).announceTable().firstOf(id.id);
    // A rank that is leaving may not have seen this cell; of one that is gone that is no matter.
    if (!theirs && !fabric.isGone(peer))
      return false;
    if (theirs && *theirs != transport::AnnounceCell::kUnknown)
      first = *theirs; // all who know say the same
  }
  id.nextOrdinal = id.settledBelow = id.finishedByReaders = first;
  id.isCounted = true;
  id.cell->beginAt(first);
  return true;
}

void AnnounceCells::retire(IdState &id) {
  if (!id.isRetired)
    retired.push_back(&id); // which may throw
  id.isRetired = true;
  if (id.isActive)
    unlink(id);
  id.isActive = false;
}

void AnnounceCells::forgetNext() {
  retired[next]->isRetired = false;
  retired[next] = retired.back();
  retired.pop_back();
}

/// The first peer for which holds(life of its cell) is false, or nothing.
template <class Holds>
const uint32_t *AnnounceCells::firstPeerWithout(const IdState &id, Holds holds) const {
  for (const uint32_t &peer : peers) {
    auto life = fabric.of(peer).announceTable().lifeOf(id.id);
    if (!life || !holds(*life))
      return &peer;
  }
  return nullptr;
}

/// The first peer that may look at this rank's cell.
const uint32_t *AnnounceCells::firstPeerInside(const IdState &id) const {
  return firstPeerWithout(id, [&](const CellLife &life) {
    return life.phase == CellPhase::Vacant || life.phase == CellPhase::Leaving ||
           (life.phase == CellPhase::Ready && life.isAtRest(id.nextOrdinal));
  });
}

/// True once the id has no cell any more.
bool AnnounceCells::step(IdState &id) {
  if (!id.isCounted && !beginToCount(id))
    return false;
  transport::AnnounceCell &cell = *id.cell;
  const uint64_t finished = id.nextOrdinal;
  // To Resting, when nothing of the sequence is left here.
  if (cell.readLife().phase == CellPhase::Active) {
    if (std::ranges::any_of(id.unreclaimed, [](const auto *open) { return open != nullptr; }))
      return false;
    cell.enter(CellPhase::Resting, finished);
  }
  // To Ready, when all ranks are at rest after as many invocations.
  if (cell.readLife().phase == CellPhase::Resting) {
    if (id.settledBelow != finished &&
        firstPeerWithout(id, [&](const CellLife &life) { return life.isAtRest(finished); }))
      return false;
    id.settledBelow = id.finishedByReaders = finished;
    for (auto &peerCell : id.peerCells)
      peerCell.store(nullptr, std::memory_order_relaxed);
    cell.first.store(finished, std::memory_order_relaxed);
    cell.enter(CellPhase::Ready, finished);
  }
  if (firstPeerInside(id))
    return false;
  // To Leaving, and back to Ready if a peer has come meanwhile.
  cell.enter(CellPhase::Leaving, finished);
  threadFence(std::memory_order_seq_cst);
  if (firstPeerInside(id)) {
    cell.enter(CellPhase::Ready, finished);
    return false;
  }
  // No rank looks at the cell from here on.
  owner.giveBack(cell);
  id.cell = nullptr;
  id.isCounted = false;
  id.nextOrdinal = 0;
  return true;
}

const uint32_t *AnnounceCells::whoKeepsAll() const {
  if (owner.numFree() != 0)
    return nullptr;
  const uint32_t *gone = nullptr;
  for (const IdState *id : retired) {
    const uint32_t *peer = firstPeerWithout(*id, [&](const CellLife &life) {
      return life.phase == CellPhase::Leaving || life.isAtRest(id->nextOrdinal);
    });
    // One sequence that no dead rank keeps is enough: its cell may come back.
    if (!peer || !fabric.isGone(*peer))
      return nullptr;
    gone = peer;
  }
  return gone;
}

std::string AnnounceCells::describeRetired() const {
  constexpr size_t kMostNamed = 4;
  std::string text;
  for (size_t i = 0; i < std::min(retired.size(), kMostNamed); ++i) {
    const IdState &id = *retired[i];
    const uint32_t *peer = firstPeerInside(id);
    text += (i == 0 ? "" : ", ") + transport::describeSequence(id.id);
    if (peer)
      text += " (rank " + std::to_string(*peer) + " may still use it)";
  }
  return text + (retired.size() > kMostNamed ? " and others" : "");
}

} // namespace occl::daemon
