// The place where the processes of a group meet: a small object in POSIX shared memory that lists
// who has joined.
//
// Everything that changes which object a name means (creating it, joining it, finding it stale,
// unlinking it) happens under flock on the object itself, and whoever has locked it looks first
// whether it still has its name. The kernel gives the lock up when its holder is killed, so no
// state of the object can block anyone for long.
//
// A rank that has joined holds the byte of its number in the object's file (see lockable_file.h):
// so all see for the life of the group, and of those made of it, whether its process lives.
#pragma once

#include "runtime/base/process_identity.h"
#include "runtime/base/status.h"
#include "runtime/control/shm/lockable_file.h"
#include "runtime/control/shm/mapping.h"
#include "runtime/sync/atomic.h"
#include "runtime/sync/deadline.h"

#include <functional>
#include <memory>
#include <string>

namespace occl::bootstrap {

enum class RankState : uint32_t {
  Missing = 0,
  Joined, // its slot is filled in
  Mapped, // it has mapped the segments of all
};

/// What one rank tells the others. The plain fields are written once, before state becomes Joined.
struct RankSlot {
  Atomic<RankState> state;
  int32_t thread;            // which joins, and is there until all have mapped
  int32_t segmentDescriptor; // of its segment, in its own process
  int32_t bellDescriptor;    // of its device's doorbell, likewise
  ProcessIdentity process;
  Atomic<uint32_t> barriers; // entered
  Atomic<bool> left;         // it gave up, or its group was destroyed
};

/// What a rank that joins says.
struct JoiningRank {
  uint32_t rank = 0;
  uint32_t numRanks = 0;
  uint64_t segmentBytes = 0;
  uint64_t job = 0; // see ProcessGroupOptions
  // Descriptors of its process.
  int segment = -1;
  int bell = -1;
};

struct ControlHeader {
  Atomic<uint32_t> magic; // written last by the creator
  uint32_t version;
  uint32_t numRanks;
  Atomic<uint32_t> changes; // futex: any change of any slot
  uint64_t segmentBytes;
  uint64_t pidNamespace; // the pids in the slots mean nothing in another one
  uint64_t job;          // of the first rank that said one; else 0
};

/// What is in an object, with the file that its ranks hold. A view of a mapping, or of a copy.
struct ControlView {
  std::byte *memory = nullptr;
  const LockableFile *file = nullptr;

  ControlHeader &header() const { return *reinterpret_cast<ControlHeader *>(memory); }
  RankSlot &slot(uint32_t rank) const {
    return reinterpret_cast<RankSlot *>(memory + sizeof(ControlHeader))[rank];
  }
  /// Whether the rank had joined, and has left or is dead.
  bool isGone(uint32_t rank) const;
  /// Whether a rank that had joined is gone: then the group can never form.
  bool isStale() const;
  /// Ranks that the object says there are, and no more than there can be.
  uint32_t numRanks() const;
};

class ControlObject {
public:
  /// Joins, creating the object if this is the first rank; removes stale ones. The last rank to
  /// join takes the name away. Timeout if that takes until the deadline; Mismatch, also for an
  /// object that is not this user's.
  static StatusOr<ControlObject> join(const std::string &name, const JoiningRank &own,
                                      const Deadline &deadline);

  RankSlot &slot(uint32_t rank) const { return view().slot(rank); }
  bool isGone(uint32_t rank) const { return view().isGone(rank); }
  /// Ranks hold the byte of their number.
  std::shared_ptr<const LockableFile> heldFile() const { return file; }
  /// Says to the others that the state or barrier count of a slot has changed.
  void announceChange() const;

  /// Returns when reached(slot) holds for all ranks. Timeout says which ranks "<notReached> in
  /// time"; PeerFailed which rank, for which it does not hold, has left or is dead; or what
  /// whyGone() says, which is asked now and then if it is there.
  Status awaitAll(const std::function<bool(const RankSlot &)> &reached, const char *notReached,
                  const Deadline &deadline, const std::function<Status()> &whyGone = {}) const;

  Status peerFailed(uint32_t rank) const;

  /// The rank takes no further part; if no other is left, the name goes too.
  void leave(uint32_t rank);

  /// Removes objects of this user that killed processes have left behind, under any name: as many
  /// as it finds until the deadline, and in a short time.
  static void removeStale(const Deadline &deadline);

private:
  ControlObject(std::string name, const JoiningRank &own, std::shared_ptr<LockableFile> file,
                Mapping memory);

  /// Opens and maps the object of that name, which is made if there is none.
  static StatusOr<ControlObject> open(const std::string &name, const JoiningRank &own);

  ControlView view() const { return {memory.get().data(), file.get()}; }
  ControlHeader &header() const { return view().header(); }
  void lookForDead(uint32_t &cursor) const;
  // The functions below are called under the lock.
  /// Fills in the header of a new object; Mismatch if it is not ours.
  Status prepare();
  bool hasLivingRank() const;
  bool allJoined() const;
  Status checkJob();
  Status checkFits() const;
  Status claim();
  Status takePlace();
  static void dropName(const std::string &name) noexcept;

  std::string name; // of the group
  JoiningRank own;
  std::shared_ptr<LockableFile> file;
  Mapping memory;
};

} // namespace occl::bootstrap
