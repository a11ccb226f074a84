// Access to the buffers of ranks in other processes.
#pragma once

#include "runtime/exec/step/invocation.h"
#include "runtime/sync/atomic.h"

#include <cerrno>
#include <cstdint>

namespace occl::interpreter {

/// What a rank knows of another one's memory.
struct PeerMemory {
  /// Memory of the other rank that is mapped here, too.
  char *mapped = nullptr;
  uint64_t mappedBytes = 0;
  /// Its process, if that may be read; else 0.
  int32_t process = 0;
  /// Not 0 once the rank has failed, and so before its program has a buffer back whose invocation
  /// has not been completed by this rank, too. Null where there is no such word.
  const Atomic<uint32_t> *failedBy = nullptr;

  /// Where `bytes` at a mapped reference lie here; nullptr, with errno, if they do not lie in the
  /// memory.
  char *at(Reference reference, uint64_t bytes) const {
    uint64_t offset = reference & ~kMappedReference;
    if (offset <= mappedBytes && bytes <= mappedBytes - offset)
      return mapped + offset;
    errno = EFAULT;
    return nullptr;
  }
  /// Copies `bytes` at a reference that is not mapped. Bounded: the kernel copies or refuses.
  /// False, with errno, if the process or its memory is gone; then anything may have been written.
  bool read(Reference reference, char *to, uint64_t bytes) const;
  /// Whether what was read of the rank's buffers before this call may be what its program has
  /// stored to them after its call had returned an error: true, with errno.
  bool mayHaveChanged() const {
    if (!failedBy)
      return false;
    threadFence(std::memory_order_acquire); // the word is read after all of that
    if (failedBy->load(std::memory_order_relaxed) == 0)
      return false;
    errno = ECANCELED;
    return true;
  }

private:
  static bool copy(int32_t thread, Reference reference, char *to, uint64_t bytes);
};

/// Whether the system lets this process read the memory of another one, which has `probe` at
/// `address`.
bool canRead(int32_t process, Reference address, uint64_t probe);

} // namespace occl::interpreter
