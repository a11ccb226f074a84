// Descriptors that a child made by fork() must not keep: as long as it has a copy of a connection,
// the peers do not see that the process that they know has ended.
#pragma once

#include <cstdint>
#include <functional>

namespace occl {

/// While one lives, no thread of this process makes a child by fork(), nor has another one.
/// Briefly: nothing that waits, nor another one of the same thread.
class NoFork {
public:
  NoFork();
  ~NoFork();
  NoFork(const NoFork &) = delete;
  NoFork &operator=(const NoFork &) = delete;
};

/// A descriptor, and which process has opened it. -1: none.
struct OwnDescriptor {
  int number = -1;
  uint32_t process = 0;
};

/// What `open` opens, without waiting; none if that is negative, with `open`'s errno. Every child
/// closes it, also one that is made meanwhile. Children of vfork() and posix_spawn() are meant to
/// execute a program, which closes what has O_CLOEXEC. Any thread.
OwnDescriptor openInThisProcess(const std::function<int()> &open);
/// Once, if there is one. In a child nothing: it is closed there. Any thread.
void closeInThisProcess(const OwnDescriptor &opened);

/// The same for a descriptor that somebody else closes: from now on, until the destructor. Any
/// thread, also for one that is closed in children already.
class ClosedInChildren {
public:
  explicit ClosedInChildren(int descriptor);
  ~ClosedInChildren();
  ClosedInChildren(const ClosedInChildren &) = delete;
  ClosedInChildren &operator=(const ClosedInChildren &) = delete;

private:
  const int descriptor;
};

} // namespace occl
