#include "runtime/bootstrap/control_object.h"

#include "runtime/base/futex.h"
#include "runtime/base/thread.h"
#include "runtime/bootstrap/bootstrap.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <vector>

namespace occl::bootstrap {
namespace {

constexpr uint32_t kMagic = 0x6c63636f; // "occl"
constexpr uint32_t kVersion = 2;
constexpr uint64_t kObjectBytes = sizeof(ControlHeader) + kMaxRanks * sizeof(RankSlot);
constexpr const char *kDirectory = "/dev/shm";
constexpr const char *kPrefix = "occl-";
/// How often a waiting rank looks whether the others still live.
constexpr auto kLivenessPeriod = std::chrono::milliseconds(20);
/// For the lock, which others hold for microseconds, unless they are stopped: then the next start
/// cleans up.
constexpr auto kLeaveTimeout = std::chrono::milliseconds(200);

std::string objectPath(const std::string &name) { return "/" + (kPrefix + name); }

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

/// "rank 3" or "ranks 3, 5".
std::string listRanks(const std::vector<uint32_t> &ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size(); ++i)
    text += (i ? ", " : "") + std::to_string(ranks[i]);
  return text;
}

Status mismatch(const std::string &name, const char *what, uint64_t expected, uint64_t got) {
  return {StatusCode::Mismatch, "group '" + name + "': the ranks that have joined expect " +
                                    std::to_string(expected) + " as " + what + ", got " +
                                    std::to_string(got) + " from this rank"};
}

} // namespace

bool isGone(const RankSlot &slot) {
  return slot.state.load(std::memory_order_acquire) != RankState::Missing &&
         (slot.left.load(std::memory_order_acquire) || !isAlive(slot.process));
}

ControlObject::ControlObject(std::string name, Descriptor file, Mapping memory)
    : name(std::move(name)), file(std::move(file)), memory(std::move(memory)) {}

ControlHeader &ControlObject::header() const {
  return *reinterpret_cast<ControlHeader *>(memory.get().data());
}

RankSlot &ControlObject::slot(uint32_t rank) const {
  return reinterpret_cast<RankSlot *>(memory.get().data() + sizeof(ControlHeader))[rank];
}

bool ControlObject::hasName() const {
  struct stat info;
  return fstat(file.get(), &info) == 0 && info.st_nlink > 0;
}

Status ControlObject::removeName() const {
  std::string path = objectPath(name);
  if (shm_unlink(path.c_str()) != 0 && errno != ENOENT)
    return systemError("cannot remove shared memory " + path, errno);
  return {};
}

bool ControlObject::isStale() const {
  for (uint32_t rank = 0; rank < std::min(header().numRanks, kMaxRanks); ++rank)
    if (isGone(slot(rank)))
      return true;
  return false;
}

bool ControlObject::hasLivingRank() const {
  for (uint32_t rank = 0; rank < std::min(header().numRanks, kMaxRanks); ++rank)
    if (slot(rank).state.load(std::memory_order_acquire) != RankState::Missing &&
        !isGone(slot(rank)))
      return true;
  return false;
}

bool ControlObject::allJoined() const {
  for (uint32_t rank = 0; rank < header().numRanks; ++rank)
    if (slot(rank).state.load(std::memory_order_acquire) == RankState::Missing)
      return false;
  return true;
}

Status ControlObject::checkFits(uint32_t numRanks, uint64_t segmentBytes) const {
  if (header().numRanks != numRanks)
    return mismatch(name, "the number of ranks", header().numRanks, numRanks);
  if (header().segmentBytes != segmentBytes)
    return mismatch(name, "the bytes of a rank's segment", header().segmentBytes, segmentBytes);
  return {};
}

Status ControlObject::claim(uint32_t rank, const RankFiles &files) {
  RankSlot &own = slot(rank);
  if (own.state.load(std::memory_order_acquire) != RankState::Missing)
    return {StatusCode::Mismatch,
            "group '" + name + "': rank " + std::to_string(rank) + " is already taken by process " +
                std::to_string(own.process.pid) + "; is the name used by two groups?"};
  own.segmentDescriptor = files.segment;
  own.bellDescriptor = files.bell;
  own.process = ownProcess();
  own.state.store(RankState::Joined, std::memory_order_release);
  return {};
}

StatusOr<ControlObject> ControlObject::open(const std::string &name, int flags) {
  std::string path = objectPath(name);
  Descriptor file(shm_open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600));
  if (!file.valid())
    return systemError("cannot open shared memory " + path, errno);
  struct stat info;
  if (fstat(file.get(), &info) != 0)
    return systemError("cannot examine shared memory " + path, errno);
  // Every process gives a new object the same size, so that this needs no lock. With its memory,
  // since /dev/shm may be full.
  if (int error = info.st_size == 0 ? growFile(file.get(), kObjectBytes, true) : 0; error != 0) {
    FileLock lock(file.get());
    if (lock.held() && fstat(file.get(), &info) == 0 && info.st_size == 0 && info.st_nlink > 0)
      shm_unlink(path.c_str());
    return systemError("cannot allocate " + std::to_string(kObjectBytes) +
                           " bytes of shared memory " + kDirectory + path,
                       error);
  }
  if (info.st_size != 0 && info.st_size != static_cast<off_t>(kObjectBytes))
    return Status(StatusCode::Mismatch, "shared memory " + path + " has " +
                                            std::to_string(info.st_size) + " bytes, expected " +
                                            std::to_string(kObjectBytes) +
                                            ": it belongs to another program or version of OCCL");
  auto memory = Mapping::ofFile(file.get(), kObjectBytes, path.c_str());
  if (!memory.ok())
    return memory.status();
  return ControlObject(name, std::move(file), std::move(*memory));
}

Status ControlObject::prepare(uint32_t numRanks, uint64_t segmentBytes) {
  uint32_t magic = header().magic.load(std::memory_order_acquire);
  if (magic == 0) { // new, or its creator was killed before it had joined
    std::memset(memory.get().data(), 0, memory.get().size());
    header().version = kVersion;
    header().numRanks = numRanks;
    header().segmentBytes = segmentBytes;
    header().pidNamespace = ownPidNamespace();
    return {};
  }
  if (magic != kMagic || header().version != kVersion || header().numRanks > kMaxRanks)
    return {StatusCode::Mismatch, "shared memory " + objectPath(name) +
                                      " belongs to another program or version of OCCL (expected "
                                      "version " +
                                      std::to_string(kVersion) + ", got " +
                                      std::to_string(header().version) + ")"};
  if (header().pidNamespace != ownPidNamespace())
    return {StatusCode::Mismatch, "group '" + name +
                                      "' was begun in another container (PID namespace); all ranks "
                                      "must be in one. If nothing uses it, remove " +
                                      kDirectory + objectPath(name)};
  return {};
}

Status ControlObject::takePlace(uint32_t numRanks, uint32_t rank, uint64_t segmentBytes,
                                const RankFiles &files) {
  Status fits = checkFits(numRanks, segmentBytes);
  if (!fits.ok() && rank >= header().numRanks)
    return fits;
  if (Status status = claim(rank, files); !status.ok())
    return status;
  // A rank that does not fit has taken its place all the same: so the others learn at once that no
  // group will form.
  if (!fits.ok())
    slot(rank).left.store(true, std::memory_order_release);
  header().magic.store(kMagic, std::memory_order_release);
  if (allJoined())
    (void)removeName(); // where it stays it is stale when the group has gone
  announceChange();
  return fits;
}

StatusOr<ControlObject> ControlObject::join(const std::string &name, uint32_t numRanks,
                                            uint32_t rank, uint64_t segmentBytes,
                                            const RankFiles &files, const Deadline &deadline) {
  do {
    auto object = open(name, O_CREAT);
    if (!object.ok())
      return object;
    FileLock lock(object->file.get(), deadline);
    if (!lock.held())
      return Status(StatusCode::Timeout, "group '" + name + "': shared memory " + objectPath(name) +
                                             " stays locked by a rank that was stopped while it "
                                             "started (" +
                                             lockHolder(object->file.get()) + ")");
    if (!object->hasName()) // it went while we waited for the lock
      continue;
    if (Status status = object->prepare(numRanks, segmentBytes); !status.ok())
      return status;
    if (object->isStale()) {
      if (Status status = object->removeName(); !status.ok())
        return status;
      continue;
    }
    if (Status status = object->takePlace(numRanks, rank, segmentBytes, files); !status.ok())
      return status;
    return object;
  } while (!deadline.passed());
  return Status(StatusCode::Timeout,
                "group '" + name + "': other processes use the name, too: shared memory " +
                    objectPath(name) + " went or was left behind again and again");
}

void ControlObject::announceChange() const {
  header().changes.fetch_add(1, std::memory_order_release);
  futexWakeAll(header().changes);
}

Status ControlObject::awaitAll(const std::function<bool(const RankSlot &)> &reached,
                               const char *notReached, const Deadline &deadline) const {
  auto lastLook = Deadline::Clock::now();
  while (true) {
    uint32_t seen = header().changes.load(std::memory_order_acquire);
    auto now = Deadline::Clock::now();
    const bool lookForDead = now - lastLook >= kLivenessPeriod;
    if (lookForDead)
      lastLook = now;
    std::vector<uint32_t> waitingFor;
    for (uint32_t rank = 0; rank < header().numRanks; ++rank) {
      // Gone first, reached second: what a rank did before it went counts.
      const RankSlot &other = slot(rank);
      bool gone = lookForDead ? isGone(other) : other.left.load(std::memory_order_acquire);
      if (reached(other))
        continue;
      if (gone)
        return peerFailed(rank);
      waitingFor.push_back(rank);
    }
    if (waitingFor.empty())
      return {};
    if (deadline.passed())
      return {StatusCode::Timeout, "group '" + name + "': " + listRanks(waitingFor) + " of " +
                                       std::to_string(header().numRanks) + " " + notReached +
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
  if (!hasName()) // for good: a group that has formed has none
    return;
  // Wait for whoever is just joining or leaving too: the last to go takes the name away.
  FileLock lock(file.get(), Deadline(kLeaveTimeout));
  if (lock.held() && hasName() && !hasLivingRank())
    (void)removeName(); // the next start tries again
}

void ControlObject::removeStale() {
  std::unique_ptr<DIR, int (*)(DIR *)> directory(opendir(kDirectory), closedir);
  if (!directory)
    return;
  while (const dirent *entry = readdir(directory.get())) {
    if (std::strncmp(entry->d_name, kPrefix, std::strlen(kPrefix)) != 0)
      continue;
    auto object = open(entry->d_name + std::strlen(kPrefix), 0);
    if (!object.ok())
      continue;
    object->removeIfStale();
  }
}

void ControlObject::removeIfStale() const {
  bool ours = false;
  do {
    FileLock lock(file.get());
    if (!lock.held() || !hasName())
      return;
    uint32_t magic = header().magic.load(std::memory_order_acquire);
    ours = magic == kMagic && header().version == kVersion &&
           header().pidNamespace == ownPidNamespace();
    if (magic == 0 || (ours && isStale())) {
      (void)removeName(); // it may be in nobody's way
      return;
    }
    // Who wanted the lock meanwhile and gave up had left before that: it is seen now.
  } while (ours && isStale());
}

} // namespace occl::bootstrap
