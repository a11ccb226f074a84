// The control object of a group of processes: joining, waiting, leaving, cleaning up.
#include "runtime/control/bootstrap/control_object.h"

#include "runtime/control/bootstrap/list_ranks.h"

#include "runtime/control/bootstrap/bootstrap.h"
#include "runtime/control/shm/user_object.h"
#include "runtime/sync/futex.h"
#include "runtime/sync/thread.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <vector>

namespace occl::bootstrap {
namespace {

constexpr uint32_t kMagic = 0x6c63636f; // "occl"
constexpr uint32_t kVersion = 3;
constexpr uint64_t kObjectBytes = sizeof(ControlHeader) + kMaxRanks * sizeof(RankSlot);
/// How often a waiting rank looks whether the others still live.
constexpr auto kLivenessPeriod = std::chrono::milliseconds(20);
/// At how many it looks then. Who finds one dead tells all, so a large group looks at everybody
/// in a few periods, too, and asks the system no more than each rank some times.
constexpr uint32_t kLooksPerPeriod = 4;
/// For the lock, which others hold for microseconds, unless they are stopped: then the next start
/// cleans up.
constexpr auto kLeaveTimeout = std::chrono::milliseconds(200);
/// For removing what others have left behind, which is a kindness and no part of a start.
constexpr auto kMostCleaning = std::chrono::milliseconds(1000);

std::string pathOf(const std::string &name) { return "/dev/shm" + userObjectName(name); }

/// Identifies the set of processes that pids of this process refer to: a container has its own.
uint64_t ownPidNamespace() {
  struct stat info;
  return stat("/proc/self/ns/pid", &info) == 0 ? info.st_ino : 0;
}

/// Holds flock on a file; without a deadline, only if nobody else holds it.
class FileLock {
public:
  explicit FileLock(int file) : file(file), locked(flock(file, LOCK_EX | LOCK_NB) == 0) {}
  FileLock(int file, const Deadline &deadline) : FileLock(file) {
    // Holders do a few system calls; polling is simpler than a wait that must also end at the
    // deadline.
    while (!locked && !deadline.passed()) {
      sleepFor(std::chrono::milliseconds(1));
      locked = flock(file, LOCK_EX | LOCK_NB) == 0;
    }
  }
  ~FileLock() {
    if (locked)
      flock(file, LOCK_UN);
  }
  FileLock(const FileLock &) = delete;
  FileLock &operator=(const FileLock &) = delete;

  bool held() const { return locked; }

private:
  int file;
  bool locked = false;
};

/// "process 17", or what is known if the system does not say who has locked the file.
std::string lockHolder(int file) {
  struct stat info;
  std::unique_ptr<std::FILE, int (*)(std::FILE *)> locks(std::fopen("/proc/locks", "re"),
                                                         std::fclose);
  char line[256];
  while (locks && fstat(file, &info) == 0 && std::fgets(line, sizeof line, locks.get())) {
    int process = 0;
    unsigned deviceMajor = 0, deviceMinor = 0;
    unsigned long inode = 0;
    // "7: FLOCK  ADVISORY  WRITE 17 00:1b:4711 0 EOF"
    if (std::sscanf(line, "%*d: FLOCK %*s %*s %d %x:%x:%lu", &process, &deviceMajor, &deviceMinor,
                    &inode) == 4 &&
        inode == info.st_ino && deviceMajor == major(info.st_dev) &&
        deviceMinor == minor(info.st_dev))
      return "process " + std::to_string(process);
  }
  return "process unknown";
}

Status mismatch(const std::string &name, const char *what, uint64_t expected, uint64_t got) {
  return {StatusCode::Mismatch, "group '" + name + "': the ranks that have joined expect " +
                                    std::to_string(expected) + " as " + what + ", got " +
                                    std::to_string(got) + " from this rank"};
}

/// Under the lock.
bool hasName(const LockableFile &file) {
  struct stat info;
  return fstat(file.get(), &info) == 0 && info.st_nlink > 0;
}

} // namespace

uint32_t ControlView::numRanks() const { return std::min(header().numRanks, kMaxRanks); }

bool ControlView::isGone(uint32_t rank) const {
  const RankSlot &other = slot(rank);
  if (other.state.load(std::memory_order_acquire) == RankState::Missing)
    return false;
  if (other.left.load(std::memory_order_acquire))
    return true;
  // A process does not see its own locks, so ranks of one process count as alive.
  return other.process != ownProcess() && !file->isHeldByOthers(rank);
}

bool ControlView::isStale() const {
  for (uint32_t rank = 0; rank < numRanks(); ++rank)
    if (isGone(rank))
      return true;
  return false;
}

ControlObject::ControlObject(std::string name, const JoiningRank &own,
                             std::shared_ptr<LockableFile> file, Mapping memory)
    : name(std::move(name)), own(own), file(std::move(file)), memory(std::move(memory)) {}

bool ControlObject::hasLivingRank() const {
  // The name may go once no such rank is left.
  for (uint32_t rank = 0; rank < view().numRanks(); ++rank)
    if (slot(rank).state.load(std::memory_order_acquire) != RankState::Missing && !isGone(rank))
      return true;
  return false;
}

bool ControlObject::allJoined() const {
  for (uint32_t rank = 0; rank < own.numRanks; ++rank)
    if (slot(rank).state.load(std::memory_order_acquire) == RankState::Missing)
      return false;
  return true;
}

Status ControlObject::checkFits() const {
  if (header().numRanks != own.numRanks)
    return mismatch(name, "the number of ranks", header().numRanks, own.numRanks);
  if (header().segmentBytes != own.segmentBytes)
    return mismatch(name, "the bytes of a rank's segment", header().segmentBytes, own.segmentBytes);
  return {};
}

/// Who has joined stays unharmed by a rank of another job.
Status ControlObject::checkJob() {
  if (own.job != 0 && header().job != 0 && own.job != header().job)
    return {StatusCode::Mismatch,
            "group '" + name + "': rank " + std::to_string(own.rank) +
                " was started by another job than the ranks that have joined. Give each job's "
                "group a name of its own; or, if they belong together, set OCCL_JOB to the same "
                "value for all ranks"};
  if (header().job == 0)
    header().job = own.job;
  return {};
}

/// Where it stays it is stale when the group has gone, and the next start tries again.
void ControlObject::dropName(const std::string &name) noexcept {
  try {
    (void)removeUserObject(name);
  } catch (const std::bad_alloc &) {
  }
}

Status ControlObject::claim() {
  RankSlot &place = slot(own.rank);
  auto taken = [&](const std::string &by) -> Status {
    return {StatusCode::Mismatch, "group '" + name + "': rank " + std::to_string(own.rank) +
                                      " is already taken by " + by +
                                      "; is the name used by two groups?"};
  };
  // Both the slot and the lock of the rank must be free.
  if (place.state.load(std::memory_order_acquire) != RankState::Missing)
    return taken("process " + std::to_string(place.process.pid));
  if (int error = file->hold(own.rank); error == EAGAIN)
    return taken("another process");
  else if (error != 0)
    return systemError("cannot lock shared memory " + pathOf(name), error);
  // The fields are complete before the state says so.
  place.thread = gettid();
  place.segmentDescriptor = own.segment;
  place.bellDescriptor = own.bell;
  place.process = ownProcess();
  place.state.store(RankState::Joined, std::memory_order_release);
  return {};
}

StatusOr<ControlObject> ControlObject::open(const std::string &name, const JoiningRank &own) {
  auto object = openUserObject(name, O_CREAT);
  if (!object.ok())
    return object.status();
  auto file = std::make_shared<LockableFile>(std::move(object->file));
  // Every process gives a new object the same size, so that this needs no lock. With its memory,
  // since /dev/shm may be full.
  if (int error = object->bytes == 0 ? growFile(file->get(), kObjectBytes, true) : 0; error != 0) {
    FileLock lock(file->get());
    struct stat info;
    if (lock.held() && fstat(file->get(), &info) == 0 && info.st_size == 0 && info.st_nlink > 0)
      (void)removeUserObject(name);
    return systemError("cannot allocate " + std::to_string(kObjectBytes) +
                           " bytes of shared memory " + pathOf(name),
                       error);
  }
  if (object->bytes != 0 && object->bytes != kObjectBytes)
    return Status(StatusCode::Mismatch, "shared memory " + pathOf(name) + " has " +
                                            std::to_string(object->bytes) + " bytes, expected " +
                                            std::to_string(kObjectBytes) +
                                            ": it belongs to another program or version of OCCL");
  auto memory = Mapping::ofFile(file->get(), kObjectBytes, pathOf(name).c_str());
  if (!memory.ok())
    return memory.status();
  return ControlObject(name, own, std::move(file), std::move(*memory));
}

Status ControlObject::prepare() {
  uint32_t magic = header().magic.load(std::memory_order_acquire);
  if (magic == 0) { // new, or its creator was killed before it had joined
    std::memset(memory.get().data(), 0, memory.get().size());
    header().version = kVersion;
    header().numRanks = own.numRanks;
    header().segmentBytes = own.segmentBytes;
    header().pidNamespace = ownPidNamespace();
    return {};
  }
  if (magic != kMagic || header().version != kVersion || header().numRanks == 0 ||
      header().numRanks > kMaxRanks)
    return {StatusCode::Mismatch, "shared memory " + pathOf(name) +
                                      " belongs to another program or version of OCCL (expected "
                                      "version " +
                                      std::to_string(kVersion) + ", got " +
                                      std::to_string(header().version) + ")"};
  if (header().pidNamespace != ownPidNamespace())
    return {StatusCode::Mismatch, "group '" + name +
                                      "' was begun in another container (PID namespace); all ranks "
                                      "must be in one. If nothing uses it, remove " +
                                      pathOf(name)};
  return {};
}

Status ControlObject::takePlace() {
  if (Status status = checkJob(); !status.ok())
    return status;
  Status fits = checkFits();
  if (!fits.ok() && own.rank >= view().numRanks())
    return fits;
  if (Status status = claim(); !status.ok())
    return status;
  // A rank that does not fit has taken its place all the same: so the others learn at once that no
  // group will form.
  if (!fits.ok())
    slot(own.rank).left.store(true, std::memory_order_release);
  header().magic.store(kMagic, std::memory_order_release);
  if (fits.ok() && allJoined())
    dropName(name);
  announceChange();
  return fits;
}

StatusOr<ControlObject> ControlObject::join(const std::string &name, const JoiningRank &own,
                                            const Deadline &deadline) {
  do {
    auto object = open(name, own);
    if (!object.ok())
      return object;
    FileLock lock(object->file->get(), deadline);
    if (!lock.held())
      return Status(StatusCode::Timeout, "group '" + name + "': shared memory " + pathOf(name) +
                                             " stays locked by a rank that was stopped while it "
                                             "started (" +
                                             lockHolder(object->file->get()) + ")");
    if (!hasName(*object->file)) // it went while we waited for the lock
      continue;
    if (Status status = object->prepare(); !status.ok())
      return status;
    // A rank that had joined is gone, so this object's group can never form.
    if (object->view().isStale()) {
      if (Status status = removeUserObject(name); !status.ok())
        return status;
      continue;
    }
    if (Status status = object->takePlace(); !status.ok())
      return status;
    return object;
  } while (!deadline.passed());
  return Status(StatusCode::Timeout, "group '" + name +
                                         "': other processes use the name, too: shared memory " +
                                         pathOf(name) + " went or was left behind again and again");
}

void ControlObject::announceChange() const {
  header().changes.fetch_add(1, std::memory_order_release);
  futexWakeAll(header().changes);
}

/// Has the others know, too: so each needs to look at a few only.
void ControlObject::lookForDead(uint32_t &cursor) const {
  uint32_t looks = 0;
  for (uint32_t i = 0; i < own.numRanks && looks < kLooksPerPeriod; ++i) {
    // The cursor goes around, so all ranks are looked at in some periods.
    cursor = (cursor + 1) % own.numRanks;
    RankSlot &other = slot(cursor);
    if (other.state.load(std::memory_order_acquire) == RankState::Missing ||
        other.left.load(std::memory_order_acquire))
      continue;
    ++looks;
    if (!isGone(cursor))
      continue;
    other.left.store(true, std::memory_order_release);
    announceChange();
  }
}

Status ControlObject::awaitAll(const std::function<bool(const RankSlot &)> &reached,
                               const char *notReached, const Deadline &deadline,
                               const std::function<Status()> &whyGone) const {
  auto lastLook = Deadline::Clock::now();
  uint32_t cursor = own.rank; // the ranks begin in different places
  while (true) {
    uint32_t seen = header().changes.load(std::memory_order_acquire);
    Status gone;
    if (auto now = Deadline::Clock::now(); now - lastLook >= kLivenessPeriod) {
      lastLook = now;
      lookForDead(cursor);
      if (whyGone)
        gone = whyGone();
    }
    std::vector<uint32_t> waitingFor;
    for (uint32_t rank = 0; rank < own.numRanks; ++rank) {
      // Gone first, reached second: what a rank did before it went counts.
      const RankSlot &other = slot(rank);
      bool hasLeft = other.left.load(std::memory_order_acquire);
      if (reached(other))
        continue;
      if (hasLeft)
        return peerFailed(rank);
      waitingFor.push_back(rank);
    }
    if (waitingFor.empty())
      return {};
    if (!gone.ok())
      return gone;
    if (deadline.passed())
      return {StatusCode::Timeout, "group '" + name + "': " + listRanks(waitingFor) + " of " +
                                       std::to_string(own.numRanks) + " " + notReached +
                                       " in time"};
    futexWait(header().changes, seen,
              std::min<std::chrono::nanoseconds>(kLivenessPeriod, deadline.remaining()));
  }
}

Status ControlObject::peerFailed(uint32_t rank) const {
  return {StatusCode::PeerFailed, "group '" + name + "': rank " + std::to_string(rank) +
                                      " (process " + std::to_string(slot(rank).process.pid) +
                                      ") has ended or given up"};
}

void ControlObject::leave(uint32_t rank) {
  slot(rank).left.store(true, std::memory_order_release);
  announceChange();
  if (!hasName(*file)) // for good: a group that has formed has none
    return;
  // Wait for whoever is just joining or leaving too: the last to go takes the name away.
  FileLock lock(file->get(), Deadline(kLeaveTimeout));
  if (lock.held() && hasName(*file) && !hasLivingRank())
    dropName(name);
}

namespace {

enum class Remains {
  Fresh, // nobody has joined yet
  Stale,
  Other, // it is in use, or it is not known what it is
};

/// Of a copy: the file may be damaged, and may shrink.
Remains examine(const LockableFile &file) {
  // The copy cannot shrink or change while it is examined.
  std::vector<std::byte> copy(kObjectBytes);
  ssize_t bytes = pread(file.get(), copy.data(), copy.size(), 0);
  if (bytes == 0)
    return Remains::Fresh;
  if (bytes != static_cast<ssize_t>(copy.size()))
    return Remains::Other;
  ControlView view{copy.data(), &file};
  uint32_t magic = view.header().magic.load(std::memory_order_acquire);
  if (magic == 0)
    return Remains::Fresh;
  bool isOurs = magic == kMagic && view.header().version == kVersion &&
                view.header().pidNamespace == ownPidNamespace();
  return isOurs && view.isStale() ? Remains::Stale : Remains::Other;
}

/// Takes the lock, if it is free.
void removeIfStale(const std::string &name) {
  auto object = openUserObject(name, 0);
  if (!object.ok())
    return;
  const LockableFile &file = object->file;
  do {
    FileLock lock(file.get());
    if (!lock.held() || !hasName(file))
      return;
    if (examine(file) != Remains::Other) {
      (void)removeUserObject(name); // it may be in nobody's way
      return;
    }
    // Who wanted the lock meanwhile and gave up had left before that: it is seen now.
  } while (examine(file) == Remains::Stale);
}

} // namespace

void ControlObject::removeStale(const Deadline &deadline) {
  // Most of the time that is left belongs to the start itself.
  auto most = std::min<std::chrono::nanoseconds>(kMostCleaning, deadline.remaining() / 4);
  Deadline end(std::chrono::duration_cast<std::chrono::milliseconds>(most));
  forEachUserObject(end, removeIfStale);
}

} // namespace occl::bootstrap
