// A file of which processes hold a byte each for as long as they live, so that others can ask
// whether they do.
//
// What is held are record locks of POSIX (fcntl). The kernel takes them back when the process has
// ended, whether its parent has looked or not, or executes another program; not when one of its
// threads ends, main() included. A forked child has none of its parent's. To ask takes one system
// call and no file descriptor, and neither process numbers nor times nor /proc come into it. A
// descriptor for every peer (pidfd) would say the same; but 1,024 ranks are more than a process may
// have of them as a rule, and who runs out of descriptors is not dead.
//
// Closing any descriptor of a file gives up all that the process holds of that file. So files that
// may be held are opened and closed through this class only.
#pragma once

#include "runtime/control/shm/mapping.h"

#include <cstdint>
#include <optional>
#include <sys/stat.h>
#include <utility>

namespace occl::bootstrap {

/// Owns a descriptor of a file, and what is held through it: one byte at most. Thread safety: any
/// for const functions.
class LockableFile {
public:
  LockableFile() = default;
  /// `info` is what fstat() says of the file.
  LockableFile(Descriptor file, const struct stat &info)
      : file(std::move(file)), id(info.st_dev, info.st_ino) {}
  /// Lets go what is held, then closes the file; or keeps it open while anything else in this
  /// process holds a byte of the same file: for good if that is another copy of this library.
  ~LockableFile();
  LockableFile(LockableFile &&other) noexcept;
  LockableFile &operator=(LockableFile &&) = delete;

  int get() const { return file.get(); }

  /// Holds the byte for the life of this object. 0, EAGAIN if another process holds it, or what
  /// else the system says. Called once.
  int hold(uint32_t byte);
  /// Whether another process holds the byte. If the system does not say it is taken for held.
  bool isHeldByOthers(uint32_t byte) const;
  /// Whether the byte, which another process has held, is free or becomes so in 200 ms: a process
  /// that is ending has hidden its other descriptors from us before.
  bool isLetGoSoon(uint32_t byte) const;

  /// Device and inode.
  using Id = std::pair<dev_t, ino_t>;

private:
  Descriptor file;
  Id id;
  std::optional<uint32_t> held;
};

} // namespace occl::bootstrap
