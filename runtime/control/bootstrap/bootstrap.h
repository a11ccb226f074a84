// How ranks find each other: a Group joins ranks 0..n-1, which are threads of this process or
// processes of this machine, and maps one segment of memory of every rank into each of them.
//
// Threads: the segments are anonymous memory. Processes meet in a control object in POSIX shared
// memory, "/occl-<uid>-<name>", whose name is gone as soon as the last rank has joined. The
// segments have no names (memfd), so that nothing can leak, and do not count against the size of
// /dev/shm. What a run killed while ranks were missing leaves behind, a later start removes. No
// file of another user is mapped or believed, whatever its name.
#pragma once

#include "runtime/base/process_identity.h"
#include "runtime/base/status.h"
#include "runtime/control/shm/lockable_file.h"
#include "runtime/control/shm/shared_bell.h"
#include "runtime/sync/deadline.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace occl::net {
class Network;
}

namespace occl::bootstrap {

inline constexpr uint32_t kMaxRanks = 1024;

/// One rank's view of its group. Everything is valid for the life of the Group; segments are
/// unmapped by its destructor, which neither waits nor tells the others. Thread safety: all
/// functions, from any thread.
class Group {
public:
  virtual ~Group() = default;
  Group(const Group &) = delete;
  Group &operator=(const Group &) = delete;

  uint32_t rank() const { return ownRank; }
  uint32_t numRanks() const { return static_cast<uint32_t>(mapped.size()); }
  /// Whether other ranks are other processes.
  bool acrossProcesses() const { return processes; }

  /// The memory of `rank` (page aligned, zero at first, not touched until used), at this process's
  /// own address. The size is the same for all ranks. All may read it. Across processes only
  /// `rank` itself may write it, and whoever has called allowStores(); threads share one mapping,
  /// and nothing keeps them from writing.
  std::span<std::byte> segment(uint32_t rank) const { return mapped[rank]; }
  /// This rank may write whole pages of rank's segment from now on. SystemError.
  Status allowStores(uint32_t rank, std::span<std::byte> pages) const;

  /// The doorbell of the device that `rank` lives on.
  Doorbell &bell(uint32_t rank) const { return bells[rank]->bell(); }
  const std::shared_ptr<SharedBell> &sharedBell(uint32_t rank) const { return bells[rank]; }

  /// Whether the process of `rank` still takes part: it has not ended, whoever has looked, nor
  /// executed another program, nor destroyed all of its groups that came from this meeting. True if
  /// the system does not say. Costs a system call across processes, and no file descriptor.
  virtual bool isAlive(uint32_t rank) const {
    return !processes || members[rank] == members[ownRank] ||
           meeting->isHeldByOthers(meetingRanks[rank]);
  }
  /// The ranks of other machines are not local: segment() is a mirror in this process then, and
  /// bell() is network()'s.
  virtual bool isLocal(uint32_t) const { return true; }
  /// Null if all ranks are local.
  virtual net::Network *network() const { return nullptr; }
  /// The process that `rank`, which is local, lives in.
  const ProcessIdentity &process(uint32_t rank) const { return members[rank]; }

  /// Returns when all ranks have called it equally often. Timeout names the ranks that have not;
  /// PeerFailed a rank whose process is gone. For set-up and teardown: it is not fast. One thread
  /// of a rank at a time.
  virtual Status barrier(const Deadline &deadline) = 0;

protected:
  Group() = default;
  /// For a group of some ranks of `parent`, by the numbers that they have there.
  void joinMeeting(const Group &parent, const std::vector<uint32_t> &ranks);

  uint32_t ownRank = 0;
  bool processes = false;
  std::vector<std::span<std::byte>> mapped; // by rank
  std::vector<ProcessIdentity> members;     // by rank
  /// Of processes: the file that all who have met hold, and whose byte each rank holds.
  std::shared_ptr<const LockableFile> meeting;
  std::vector<uint32_t> meetingRanks;
  std::vector<std::shared_ptr<SharedBell>> bells; // by rank
};

/// Ranks in this process, one for each bell: element r of the result is rank r, on the device of
/// bells[r]. segmentBytes is rounded up to whole pages.
StatusOr<std::vector<std::unique_ptr<Group>>>
formThreadGroup(const std::vector<std::shared_ptr<SharedBell>> &bells, uint64_t segmentBytes);

struct ProcessGroupOptions {
  uint32_t numRanks = 0;
  uint32_t rank = 0;
  /// 1 to 64 of [A-Za-z0-9_-]; the same on all ranks, and unique among those of this user on the
  /// machine until formProcessGroup has returned.
  std::string name;
  /// The same on all ranks; rounded up to whole pages.
  uint64_t segmentBytes = 0;
  std::chrono::milliseconds timeout{30000};
  /// Of this rank's device; made with makeShared().
  std::shared_ptr<SharedBell> bell;
  /// What tells the job of this rank from others, as jobFromEnvironment() does; 0 if nothing does.
  /// Ranks of which two say different jobs form no group.
  uint64_t job = 0;
  /// While ranks are missing, asked now and then: why they are not waited for any longer.
  std::function<Status()> whyGone = {};
};

/// One rank of a group of processes. Returns when all ranks have joined and mapped all segments.
/// Errors: InvalidArgument; Mismatch (another version, number of ranks or segment size, expected
/// and got; another job; a rank that is already taken; the name is another user's); Timeout naming
/// the missing ranks; PeerFailed; SystemError. After an error nothing remains.
StatusOr<std::unique_ptr<Group>> formProcessGroup(const ProcessGroupOptions &options);

/// Who this process is, as its launcher says.
struct Identity {
  uint32_t rank = 0;
  uint32_t numRanks = 1;
  /// A valid ProcessGroupOptions::name; or where ranks of several machines meet, by OCCL_COMM_ID or
  /// addressFromLauncher().
  std::string name;
};

/// The value of an environment variable, or nullptr. Tests pass their own.
using EnvironmentLookup = const char *(*)(const char *variable);

/// From OCCL_RANK, OCCL_SIZE, OCCL_JOB (set by occl-run); else torchrun's RANK, WORLD_SIZE,
/// MASTER_ADDR, MASTER_PORT; else Open MPI's mpirun; else Slurm's srun. InvalidArgument names the
/// variables that are missing or wrong, or says that ranks live on several machines, and nothing
/// says where they meet.
StatusOr<Identity> identityFromEnvironment(EnvironmentLookup lookup);
/// The same from this process's environment.
StatusOr<Identity> identityFromEnvironment();

/// A number that is the same for all ranks of a job and differs between jobs, as far as one can
/// tell: from OCCL_JOB, or the variables of the launcher that identityFromEnvironment() would find.
/// 0 if there are none. A job whose ranks the launcher has started again is another one only where
/// all of them are on one machine.
uint64_t jobFromEnvironment(EnvironmentLookup lookup);
uint64_t jobFromEnvironment();

/// How often the launcher has started the ranks of this machine again, if it says so. Machines
/// count for themselves, so ranks of one run may have different numbers.
std::optional<uint32_t> restartsFromEnvironment(EnvironmentLookup lookup);
std::optional<uint32_t> restartsFromEnvironment();

} // namespace occl::bootstrap
