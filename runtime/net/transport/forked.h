// Connections that a child made by fork() must not keep: as long as it has a copy, the peers do not
// see that the process that they know has ended.
#pragma once

namespace occl::net {

/// Closed in every child from now on, until the destructor. Children of vfork() and posix_spawn()
/// are meant to execute a program, which closes what has O_CLOEXEC.
class ClosedInChildren {
public:
  explicit ClosedInChildren(int descriptor);
  ~ClosedInChildren();
  ClosedInChildren(const ClosedInChildren &) = delete;
  ClosedInChildren &operator=(const ClosedInChildren &) = delete;

private:
  const int descriptor;
};

} // namespace occl::net
