// Which partitions a sender has marked ready, and what that makes ready of its messages.
#pragma once

#include "runtime/partitioned/shape.h"
#include "runtime/partitioned/spread_words.h"
#include "runtime/partitioned/words.h"

#include <cstdint>

namespace occl::partitioned {

/// Thread safety: any.
class ReadyMarks {
public:
  explicit ReadyMarks(const Shape &shape)
      : shape(shape), epochs(shape.partitions),
        marks(shape.perMessage > 1 ? shape.numMessages() : 0) {}
  /// The words are those of shape.numMessages() messages.
  ReadyMarks(const Shape &shape, MessageWords words) : ReadyMarks(shape) { setWords(words); }
  /// Before the first mark.
  void setWords(MessageWords of) { words = of; }

  /// Marks partition p in this epoch. False: it was in this epoch, or a later one, already, and
  /// nothing has changed. Who has marked it counts it.
  bool mark(uint64_t p, uint64_t epoch) {
    return raise(epochs[p], epoch, std::memory_order_relaxed);
  }
  /// Counts a partition that the thread has marked; true if its message is ready with that. What
  /// the thread has written before is visible to who reads the message's word, as is what threads
  /// have that marked the others. When all are counted the epoch, and the request, may be over.
  bool count(uint64_t p, uint64_t epoch) {
    const uint64_t message = shape.messageOf(p);
    if (shape.perMessage > 1) {
      const uint64_t all = epoch * shape.partitionsOf(message).length(); // modulo 2^64, as the sum
      if (marks[message].fetch_add(1, std::memory_order_acq_rel) + 1 != all)
        return false;
    }
    words[message].store(epoch, std::memory_order_release);
    return true;
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
  MessageWords words;
  SpreadWords epochs; // by partition: the last one in which it was marked
  SpreadWords marks;  // by message, of all epochs together; with several partitions each
};

/// The marks that a thread makes in one go, in one epoch. The last one is counted at the end, so
/// that the epoch is not over, and the request there, while the others are looked at: of the list
/// {1, 1} the second is.
class MarksInOneGo {
public:
  MarksInOneGo(ReadyMarks &marks, uint64_t epoch) : marks(marks), epoch(epoch) {}

  /// As ReadyMarks::mark.
  bool mark(uint64_t p) {
    if (!marks.mark(p, epoch))
      return false;
    countLast();
    last = p;
    hasLast = true;
    return true;
  }
  /// Whether a message is ready with any of them. The last access to the request.
  bool end() {
    countLast();
    return isMessage;
  }

private:
  void countLast() {
    if (hasLast && marks.count(last, epoch))
      isMessage = true;
  }

  ReadyMarks &marks;
  const uint64_t epoch;
  uint64_t last = 0; // marked, and not counted
  bool hasLast = false, isMessage = false;
};

} // namespace occl::partitioned
