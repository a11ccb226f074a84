#include "runtime/sync/per_thread.h"

#include <atomic>

namespace occl {

#ifndef OCCL_EXPLORE

// Here and not in the header: a variable of an inline function would be a symbol of the library.
size_t numberOfThisThread() {
  static std::atomic<size_t> numbered{0};
  thread_local size_t own = 0;
  if (own == 0)
    own = numbered.fetch_add(1, std::memory_order_relaxed) + 1;
  return own;
}

#endif

} // namespace occl
