// Which process is which: a pid alone is reused after its process is gone.
#pragma once

#include <cstdint>

namespace occl {

struct ProcessIdentity {
  int32_t pid = 0;
  /// In clock ticks since boot, of the kernel's process table.
  uint64_t startTime = 0;

  bool operator==(const ProcessIdentity &) const = default;
};

ProcessIdentity ownProcess();

/// False once the process has ended, reaped or not, also if another has taken its pid. Costs one
/// read of /proc. Any thread.
bool isAlive(const ProcessIdentity &process);

} // namespace occl
