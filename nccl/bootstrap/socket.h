// Descriptors that a child made by fork() does not keep: as long as it has a copy of a connection,
// the other side does not see that the process that it knows has ended.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

namespace occl::nccl {

/// A file descriptor. Not copied. Its copy in a child is closed there. Thread safety: one thread,
/// whatever threads do with others.
class Socket {
public:
  /// None.
  Socket() = default;
  /// What `open` opens, without waiting; none, with `open`'s errno, if that is negative. Also a
  /// child that is made meanwhile does not keep it; one of vfork() or posix_spawn() executes a
  /// program, which is what O_CLOEXEC is for.
  static Socket open(const std::function<int()> &open);
  Socket(Socket &&other) noexcept
      : file(std::exchange(other.file, -1)), process(std::exchange(other.process, 0)) {}
  Socket &operator=(Socket &&other) noexcept {
    std::swap(file, other.file);
    std::swap(process, other.process);
    return *this;
  }
  ~Socket();

  explicit operator bool() const { return file >= 0; }
  int get() const { return file; }

private:
  int file = -1;
  uint32_t process = 0; // that has opened it
};

} // namespace occl::nccl
