// Announce cells go from one collective to another, so that ids may come and go for ever.
//
// A rank takes a cell at the first call of a sequence, and may give it back once no rank can want
// anything of it. A cell that is not there says: nothing has been announced or finished that
// anybody still asks for. Sequences that have not been called for long retire. Then the cell goes
// through these phases, on each rank on its own:
//
//   Active   the rank may submit and look at the others' cells of this id
//   Resting  all its invocations are finished, and their memory is reclaimed
//   Ready    it has seen that all ranks are at rest after the same number of invocations; it has
//            forgotten where the others' cells are
//   Leaving  it is about to give the cell back, and looks once more whether all others are Ready
//            or have no cell any more
//
// A rank that submits again becomes Active before it looks at others' cells, with a sequentially
// consistent fence between; who leaves has such a fence between saying so and looking at the
// others. So one of the two sees the other: the cell stays, or is not looked at.
//
// With the cell goes all that a rank knows of the id, its count of invocations, too: nothing is
// kept of ids that have gone. Who comes back begins to count where the cells of the others say:
// those who have kept theirs were Ready, and say after how many invocations; having seen who comes
// back they stay. If nobody has one, all count from 0. A rank that is Leaving has seen who comes
// back or not, so who comes back waits until it has left or stays.
#pragma once

#include "runtime/control/fabric.h"
#include "runtime/control/records/announce_table.h"
#include "runtime/invocation/collective.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace occl::daemon {

/// Thread safety: one thread at a time, the admission's lock held.
class AnnounceCells {
public:
  explicit AnnounceCells(const Fabric &fabric);

  enum class Activation { Done, NoCellFree, PeerLeaves };
  /// Before an invocation is announced of an id that is not active.
  /// PeerLeaves: a rank that is giving back its cell does not get to it; try again.
  Activation activate(IdState &id);
  /// The active id is the one that was called last.
  void use(IdState &id) {
    if (newest != &id)
      moveToFront(id);
  }
  size_t numActive() const { return active; }
  /// Of those that are active the one called longest ago; nullptr if none is.
  IdState *leastRecentlyUsed() const { return oldest; }
  /// The id, which has a cell, may give it back.
  void retire(IdState &id);
  /// Goes on with at most `most` of the retired ids, a different ones each time: tries to reclaim
  /// its invocations by reclaim(id), and calls dropped(id) once it has no cell any more.
  template <class Reclaim, class Dropped>
  void advance(size_t most, Reclaim reclaim, Dropped dropped) {
    for (size_t i = retired.size() < most ? retired.size() : most; i > 0; --i) {
      next = next < retired.size() ? next : 0;
      IdState &id = *retired[next];
      if (id.isActive) { // it has come back
        forgetNext();
        continue;
      }
      reclaim(id);
      if (!step(id)) {
        ++next;
        continue;
      }
      forgetNext();
      dropped(id);
    }
  }
  /// If no cell is free, and none of those that are retired ever comes back since ranks are gone:
  /// one of these ranks.
  const uint32_t *whoKeepsAll() const;
  bool hasRetired() const { return !retired.empty(); }
  /// "id 7 (rank 1 may still use it)" for some that are retired; empty if none is.
  std::string describeRetired() const;

private:
  bool step(IdState &id);
  bool beginToCount(IdState &id);
  void forgetNext();
  void moveToFront(IdState &id);
  void link(IdState &id);
  void unlink(IdState &id);
  template <class Holds> const uint32_t *firstPeerWithout(const IdState &id, Holds holds) const;
  const uint32_t *firstPeerInside(const IdState &id) const;

  const Fabric &fabric;
  transport::AnnounceOwner owner;
  std::vector<uint32_t> peers;
  IdState *newest = nullptr, *oldest = nullptr; // of those that are active
  size_t active = 0;
  std::vector<IdState *> retired;
  size_t next = 0; // of these, the one to look at
};

} // namespace occl::daemon
