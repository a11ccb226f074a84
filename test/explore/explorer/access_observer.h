// Who is told of accesses of memory in programs that are instrumented (tsan_calls.cpp).
#pragma once

#include "test/explore/explorer/shadow.h"

#include <atomic>
#include <cstddef>

namespace occl::explore {

/// `place`: where the program calls. Atomic accesses are told of in the order in which they are.
class AccessObserver {
public:
  virtual void access(const void *address, size_t bytes, AccessKind kind, const void *place) = 0;
  virtual void load(const void *word, size_t bytes, std::memory_order order, const void *place) = 0;
  virtual void store(const void *word, size_t bytes, std::memory_order order,
                     const void *place) = 0;
  virtual void update(const void *word, size_t bytes, std::memory_order order,
                      const void *place) = 0;
  virtual void fence(std::memory_order order) = 0;

protected:
  ~AccessObserver() = default;
};

/// Nobody: nullptr. For whoever links tsan_calls to define.
AccessObserver *accessObserver();

} // namespace occl::explore
