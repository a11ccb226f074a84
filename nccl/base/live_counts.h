// How many of something there are, by what they differ in, for those who wait until there are none.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>

namespace occl::nccl {

/// Thread safety: add() and remove() any; who waits does so with `mutex` and `changed`.
template <class Key> struct LiveCounts {
  void add(const Key &key) {
    std::lock_guard lock(mutex);
    ++numbers[key];
  }
  /// It may have been added in the process that this one was forked from.
  void remove(const Key &key) {
    std::lock_guard lock(mutex);
    auto found = numbers.find(key);
    if (found != numbers.end() && --found->second == 0)
      numbers.erase(found);
    changed.notify_all();
  }

  std::mutex mutex;
  std::condition_variable changed;
  std::map<Key, uint32_t> numbers; // none is 0
};

} // namespace occl::nccl
