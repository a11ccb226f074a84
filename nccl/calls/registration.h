// Buffers that a program registers. Nothing depends on it: OCCL takes any buffer. Those of the
// other library's communicators are registered there.
#pragma once

#include "nccl/base/errors.h"

#include <cstdint>
#include <map>
#include <mutex>
#include <utility>

namespace occl::nccl {

/// Of a communicator. Local; ranges may nest and overlap. Thread safety: any.
class Registrations {
public:
  /// The same range gets the same handle, and is to be deregistered as often.
  Outcome add(void *buffer, size_t bytes, void *&handle);
  /// NULL is nothing to do; InvalidUsage if there is none of that handle.
  Outcome remove(void *handle);
  bool has(void *handle);

private:
  struct Entry {
    std::pair<uintptr_t, size_t> range;
    uint64_t uses = 0;
  };

  std::mutex mutex;
  uintptr_t next = 1;
  std::map<std::pair<uintptr_t, size_t>, uintptr_t> handles;
  std::map<uintptr_t, Entry> entries;
};

} // namespace occl::nccl
