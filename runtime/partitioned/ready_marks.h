// Which partitions a sender has marked ready, and what that makes ready of its messages.
#pragma once

#include "runtime/partitioned/shape.h"
#include "runtime/partitioned/words.h"

#include <cstdint>
#include <vector>

namespace occl::partitioned {

/// Thread safety: any.
class ReadyMarks {
public:
  /// Part: others of its message are missing. Message: it was the last one. Twice: it was marked in
  /// this epoch, or a later one, already; nothing has changed.
  enum class Outcome { Part, Message, Twice };

  /// The words are those of shape.numMessages() messages.
  ReadyMarks(const Shape &shape, MessageWords words)
      : shape(shape), words(words), epochs(shape.partitions),
        marks(shape.perMessage > 1 ? shape.numMessages() : 0) {}

  /// Marks partition p in this epoch; never waits. What the thread has written before is visible to
  /// who reads the message's word, as is what threads have that marked the others. After Message
  /// the epoch, and the request, may be over.
  Outcome mark(uint64_t p, uint64_t epoch) {
    if (!raise(epochs[p], epoch, std::memory_order_relaxed))
      return Outcome::Twice;
    const uint64_t message = shape.messageOf(p);
    if (shape.perMessage > 1) {
      const uint64_t all = epoch * shape.partitionsOf(message).length(); // modulo 2^64, as the sum
      if (marks[message].fetch_add(1, std::memory_order_acq_rel) + 1 != all)
        return Outcome::Part;
    }
    words[message].store(epoch, std::memory_order_release);
    return Outcome::Message;
  }
  bool isMarked(uint64_t p, uint64_t epoch) const {
    return epochs[p].load(std::memory_order_relaxed) >= epoch;
  }
  /// The first partition from p on that is not; the number of partitions if there is none.
  uint64_t firstMissing(uint64_t p, uint64_t epoch) const {
    while (p < shape.partitions && isMarked(p, epoch))
      ++p;
    return p;
  }

private:
  const Shape shape;
  const MessageWords words;
  std::vector<Word> epochs; // by partition: the last one in which it was marked
  std::vector<Word> marks;  // by message, of all epochs together; with several partitions each
};

} // namespace occl::partitioned
