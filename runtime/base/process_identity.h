// Which process is which: a pid alone is reused after its process is gone, and a forked child has
// the memory of its parent, but neither its threads nor its part in anything.
#pragma once

#include "support/process/per_process.h"

#include <atomic>
#include <cstdint>

namespace occl {

struct ProcessIdentity {
  int32_t pid = 0;
  /// Drawn by the process. No other has it, nor has a forked child.
  uint64_t cookie = 0;

  bool operator==(const ProcessIdentity &) const = default;
};

/// Of this process. Needs no file descriptor. Any thread.
ProcessIdentity ownProcess();

/// Remembers the process that it was made in. Thread safety: any.
class ProcessMark {
public:
  ProcessMark();

  /// False in a process that was forked from the one it was made in. Two loads. Children that share
  /// the memory, as those of vfork() before they execute something, count as this process.
  bool isThisProcess() const { return word->load(std::memory_order_relaxed) == cookie; }

private:
  const std::atomic<uint64_t> *word; // the system clears it in a forked child
  uint64_t cookie;
};

template <class T> using PerProcess = OnePerProcess<T, ProcessMark>;

} // namespace occl
