// Locks on bytes of files, which the system lets go when their process ends.
#include "runtime/control/shm/lockable_file.h"

#include "runtime/base/process_identity.h"
#include "runtime/sync/deadline.h"
#include "runtime/sync/mutex.h"
#include "runtime/sync/thread.h"

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <fcntl.h>
#include <map>
#include <mutex>
#include <new>
#include <unistd.h>
#include <utility>
#include <vector>

namespace occl::bootstrap {
namespace {

/// What this process holds of which files.
struct HeldFiles {
  struct Entry {
    uint32_t bytes = 0;
    std::vector<Descriptor> unused; // to be closed with the last byte
  };
  Mutex mutex;
  std::map<LockableFile::Id, Entry> byId;
};

/// Its mutex is held while a byte is taken or let go and while a file is closed.
HeldFiles &heldFiles() {
  static constinit PerProcess<HeldFiles> files;
  return files.get();
}

struct flock oneByte(short type, uint32_t byte) {
  struct flock range {};
  range.l_type = type;
  range.l_whence = SEEK_SET;
  range.l_start = byte;
  range.l_len = 1;
  return range;
}

/// Whether another copy of the library in this process holds a byte of [begin, end); 0: no end. The
/// kernel names one holder of a range, so both sides of another process's are looked at.
bool isHeldByOtherCopy(int file, off_t begin, off_t end) {
  struct flock range {};
  range.l_type = F_WRLCK;
  range.l_whence = SEEK_SET;
  range.l_start = begin;
  range.l_len = end == 0 ? 0 : end - begin;
  // Locks of the process itself are in the way of those of a descriptor.
  if (fcntl(file, F_OFD_GETLK, &range) != 0 || range.l_type == F_UNLCK)
    return false;
  if (range.l_pid == getpid())
    return true;
  const off_t behind = range.l_start + range.l_len;
  return (range.l_start > begin && isHeldByOtherCopy(file, begin, range.l_start)) ||
         (range.l_len != 0 && (end == 0 || behind < end) && isHeldByOtherCopy(file, behind, end));
}

/// Closes the file, of which this copy of the library holds nothing any more, unless another copy
/// in this process does: closing it would make that one's ranks look dead. Then it stays open.
void closeUnlessHeld(Descriptor file) {
  alignas(Descriptor) std::byte neverDestroyed[sizeof(Descriptor)];
  if (isHeldByOtherCopy(file.get(), 0, 0))
    new (neverDestroyed) Descriptor(std::move(file));
}

} // namespace

LockableFile::LockableFile(LockableFile &&other) noexcept
    : file(std::move(other.file)), id(std::move(other.id)),
      held(std::exchange(other.held, std::nullopt)) {}

int LockableFile::hold(uint32_t byte) {
  HeldFiles &files = heldFiles();
  std::lock_guard lock(files.mutex);
  HeldFiles::Entry &entry = files.byId[id];
  entry.unused.reserve(entry.unused.size() + entry.bytes + 1);
  struct flock range = oneByte(F_WRLCK, byte);
  if (fcntl(file.get(), F_SETLK, &range) != 0) {
    // The standard allows both errors for a byte that another process holds.
    int error = errno == EACCES ? EAGAIN : errno;
    if (entry.bytes == 0)
      files.byId.erase(id);
    return error;
  }
  ++entry.bytes;
  held = byte;
  return 0;
}

bool LockableFile::isHeldByOthers(uint32_t byte) const {
  struct flock range = oneByte(F_WRLCK, byte);
  return fcntl(file.get(), F_GETLK, &range) != 0 || range.l_type != F_UNLCK;
}

bool LockableFile::isLetGoSoon(uint32_t byte) const {
  for (const Deadline end(std::chrono::milliseconds(200)); isHeldByOthers(byte);) {
    if (end.passed())
      return false;
    sleepFor(std::chrono::milliseconds(1));
  }
  return true;
}

LockableFile::~LockableFile() {
  if (!file.valid())
    return;
  HeldFiles &files = heldFiles();
  std::lock_guard lock(files.mutex);
  auto found = files.byId.find(id);
  if (found == files.byId.end()) { // also in a forked child
    closeUnlessHeld(std::move(file));
    return;
  }
  if (held) {
    struct flock range = oneByte(F_UNLCK, *held);
    (void)fcntl(file.get(), F_SETLK, &range);
    --found->second.bytes;
  }
  // Closing one descriptor of a file lets go of all bytes that the process holds of it.
  if (found->second.bytes != 0) {
    found->second.unused.push_back(std::move(file)); // for each that holds there is room
    return;
  }
  // What other objects have left open is closed likewise.
  std::vector<Descriptor> unused = std::move(found->second.unused);
  files.byId.erase(found);
  for (Descriptor &each : unused)
    closeUnlessHeld(std::move(each));
  closeUnlessHeld(std::move(file));
}

} // namespace occl::bootstrap
