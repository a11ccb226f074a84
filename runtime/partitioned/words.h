// The shared words of a partitioned request. Each side writes its own, in its own segment, and
// reads the other's. They are epochs of the request, from 1 on, and only grow; 0: none yet.
// docs/decisions/hosts/partitioned.md says what each step does with them.
#pragma once

#include "runtime/base/cache_line.h"
#include "runtime/sync/atomic.h"

#include <cstdint>

namespace occl::partitioned {

using Word = Atomic<uint64_t>;

/// Sets the word to this epoch, in this order. False, and nothing has changed: it is that one
/// already, or a later one. So it is never lowered: a mark of an earlier epoch, held up since, is
/// refused.
inline bool raise(Word &word, uint64_t epoch, std::memory_order order) {
  uint64_t before = word.load(std::memory_order_relaxed);
  do
    if (before >= epoch)
      return false;
  while (!word.compare_exchange_weak(before, epoch, order, std::memory_order_relaxed));
  return true;
}

/// At the begin of both sides' blocks.
struct alignas(kCacheLine) Header {
  Word started{0};  // the last epoch that has begun
  Word received{0}; // the receiver's: the last one whose data it has
};

/// Of the sender, behind its header: for each message the last epoch in which all its partitions
/// were ready. Few messages have a line each, since threads on several processors mark them.
struct MessageWords {
  static constexpr uint64_t kWordsOfLine = kCacheLine / sizeof(Word), kMostSpread = 64;

  static constexpr uint64_t stride(uint64_t messages) {
    return messages <= kMostSpread ? kWordsOfLine : 1;
  }
  /// Of a block with so many messages; 0: a receiver's.
  static constexpr uint64_t blockBytes(uint64_t messages) {
    return sizeof(Header) + messages * stride(messages) * sizeof(Word);
  }

  MessageWords() = default;
  MessageWords(Header *block, uint64_t messages)
      : first(reinterpret_cast<Word *>(block + 1)), step(stride(messages)) {}
  Word &operator[](uint64_t message) const { return first[message * step]; }

private:
  Word *first = nullptr;
  uint64_t step = 1;
};

} // namespace occl::partitioned
