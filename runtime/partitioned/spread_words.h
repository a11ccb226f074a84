// Words of a request's partitions, or messages, in memory of this rank alone, which threads on
// several processors write at a time.
#pragma once

#include "runtime/base/cache_line.h"
#include "runtime/partitioned/words.h"
#include "runtime/sync/per_thread.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace occl::partitioned {

/// At first all 0. Few have a cache line each: a thread that marks a partition then does not wait
/// for another one that marks its neighbour. Of many, which would be as many cache lines for
/// whoever looks at all, threads seldom write neighbours at a time.
class SpreadWords {
public:
  explicit SpreadWords(uint64_t number)
      : number(number), step(number <= kMostSpread ? kWordsOfLine : 1), words(number * step) {}

  uint64_t size() const { return number; }
  Word &operator[](uint64_t i) { return words[i * step]; }
  const Word &operator[](uint64_t i) const { return words[i * step]; }

  static constexpr uint64_t kMostSpread = 512; // 32 KiB of words

private:
  static constexpr uint64_t kWordsOfLine = kCacheLine / sizeof(Word);

  uint64_t number, step;
  std::vector<Word> words;
};

/// A sum to which threads add. Up to eight of them, counted as they come, have a counter each, so
/// that none waits for another's.
class SpreadSum {
public:
  /// Of so many partitions, which are marked by as many threads at most.
  explicit SpreadSum(uint64_t partitions)
      : counters(std::clamp<uint64_t>(partitions, 1, kMostCounters)) {}

  /// What the thread has done before is visible to whoever finds it in the sum.
  void add(uint64_t value) {
    counters[numberOfThisThread() % counters.size()].fetch_add(value, std::memory_order_release);
  }
  /// Something between the sums at the begin and at the end of the call. So if there is no more to
  /// be added than what is returned, it is all there.
  uint64_t sum() const {
    uint64_t all = 0;
    for (uint64_t i = 0; i < counters.size(); ++i)
      all += counters[i].load(std::memory_order_acquire);
    return all;
  }

private:
  static constexpr uint64_t kMostCounters = 8;

  SpreadWords counters;
};

} // namespace occl::partitioned
