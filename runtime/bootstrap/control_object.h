// The place where the processes of a group meet: a small object in POSIX shared memory that lists
// who has joined.
//
// Everything that changes which object a name means (creating it, joining it, finding it stale,
// unlinking it) happens under flock on the object itself, and whoever has locked it looks first
// whether it still has its name. The kernel gives the lock up when its holder is killed, so no
// state of the object can block anyone for long.
#pragma once

#include "runtime/base/atomic.h"
#include "runtime/base/deadline.h"
#include "runtime/base/process_identity.h"
#include "runtime/base/status.h"
#include "runtime/bootstrap/mapping.h"

#include <functional>
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
  int32_t segmentDescriptor; // of its segment, in its own process
  int32_t bellDescriptor;    // of its device's doorbell, likewise
  ProcessIdentity process;
  Atomic<uint32_t> barriers; // entered
  Atomic<bool> left;         // it gave up, or its group was destroyed
};

/// What a rank shows the others, as descriptors of its process.
struct RankFiles {
  int segment = -1;
  int bell = -1;
};

/// Whether the rank had joined, and has left or is dead.
bool isGone(const RankSlot &slot);

struct ControlHeader {
  Atomic<uint32_t> magic; // written last by the creator
  uint32_t version;
  uint32_t numRanks;
  Atomic<uint32_t> changes; // futex: any change of any slot
  uint64_t segmentBytes;
  uint64_t pidNamespace; // the pids in the slots mean nothing in another one
};

class ControlObject {
public:
  /// Joins as `rank`, creating the object if this is the first rank; removes stale ones. The last
  /// rank to join takes the name away. Timeout if that takes until the deadline.
  static StatusOr<ControlObject> join(const std::string &name, uint32_t numRanks, uint32_t rank,
                                      uint64_t segmentBytes, const RankFiles &files,
                                      const Deadline &deadline);

  RankSlot &slot(uint32_t rank) const;
  /// Says to the others that the state or barrier count of a slot has changed.
  void announceChange() const;

  /// Returns when reached(slot) holds for all ranks. Timeout says which ranks "<notReached> in
  /// time"; PeerFailed which rank, for which it does not hold, has left or is dead.
  Status awaitAll(const std::function<bool(const RankSlot &)> &reached, const char *notReached,
                  const Deadline &deadline) const;

  Status peerFailed(uint32_t rank) const;

  /// The rank takes no further part; if no other is left, the name goes too.
  void leave(uint32_t rank);

  /// Removes objects of this user that killed processes have left behind, under any name.
  static void removeStale();

private:
  ControlObject(std::string name, Descriptor file, Mapping memory);

  /// Opens and maps the object of that name; flags: O_CREAT or 0.
  static StatusOr<ControlObject> open(const std::string &name, int flags);

  ControlHeader &header() const;
  /// Takes the lock, if it is free.
  void removeIfStale() const;
  // The functions below are called under the lock.
  bool hasName() const;
  /// SystemError if the object keeps its name.
  Status removeName() const;
  /// Fills in the header of a new object; Mismatch if it is not ours.
  Status prepare(uint32_t numRanks, uint64_t segmentBytes);
  /// Whether a rank that had joined is gone: then the group can never form.
  bool isStale() const;
  bool hasLivingRank() const;
  bool allJoined() const;
  Status checkFits(uint32_t numRanks, uint64_t segmentBytes) const;
  Status claim(uint32_t rank, const RankFiles &files);
  Status takePlace(uint32_t numRanks, uint32_t rank, uint64_t segmentBytes, const RankFiles &files);

  std::string name; // without "/occl-"
  Descriptor file;
  Mapping memory;
};

} // namespace occl::bootstrap
