// Descriptors that a child made by fork() does not keep (support/process/closed_in_children.h), as owners.
#pragma once

#include "support/process/closed_in_children.h"

#include <functional>
#include <utility>

namespace occl::nccl {

/// A file descriptor. Not copied. Its copy in a child is closed there. Thread safety: one thread,
/// whatever threads do with others.
class Socket {
public:
  /// None.
  Socket() = default;
  /// openInThisProcess() opens it; none, with `open`'s errno, if that is negative.
  static Socket open(const std::function<int()> &open);
  Socket(Socket &&other) noexcept : own(std::exchange(other.own, {})) {}
  Socket &operator=(Socket &&other) noexcept {
    std::swap(own, other.own);
    return *this;
  }
  ~Socket();

  explicit operator bool() const { return own.number >= 0; }
  int get() const { return own.number; }

private:
  OwnDescriptor own;
};

} // namespace occl::nccl
