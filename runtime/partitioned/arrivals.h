// Which partitions of a receiver have arrived, as messages of the sender come.
#pragma once

#include "runtime/partitioned/shape.h"
#include "runtime/partitioned/words.h"

#include <cstdint>
#include <vector>

namespace occl::partitioned {

/// Thread safety: hasArrived() is for any thread, the rest for one at a time.
class Arrivals {
public:
  explicit Arrivals(const Shape &mine) : mine(mine), arrived(mine.partitions) {}

  /// Once: how the sender divides the same elements.
  void bind(const Shape &sender) {
    theirs = sender;
    overlapping.resize(mine.partitions);
    for (uint64_t q = 0; q < mine.partitions; ++q)
      overlapping[q] = messagesOf(q).length();
  }
  /// No message of the epoch has come. Partitions without elements are there.
  void begin(uint64_t ofEpoch) {
    left = overlapping;
    isHere.assign(theirs.numMessages(), false);
    epoch = ofEpoch; // after what may throw
    messagesLeft = theirs.numMessages();
    firstLeft = 0;
    for (uint64_t q = 0; q < mine.partitions; ++q)
      if (left[q] == 0)
        arrived[q].store(epoch, std::memory_order_release);
  }
  /// Which epoch; 0: none yet.
  uint64_t current() const { return epoch; }
  /// The data of this message, which was missing, have been stored.
  void add(uint64_t message) {
    isHere[message] = true;
    --messagesLeft;
    while (firstLeft < isHere.size() && isHere[firstLeft])
      ++firstLeft;
    const plan::Range partitions = mine.cut().covering(theirs.elementsOf({message, message + 1}));
    for (uint64_t q = partitions.begin; q < partitions.end; ++q)
      if (--left[q] == 0)
        arrived[q].store(epoch, std::memory_order_release);
  }
  bool has(uint64_t message) const { return isHere[message]; }
  bool isComplete() const { return messagesLeft == 0; }
  /// The number of messages if it is complete.
  uint64_t firstMissing() const { return firstLeft; }

  /// Whether all that overlap partition q have come in this epoch, or a later one. Then so are
  /// their data, to this thread.
  bool hasArrived(uint64_t q, uint64_t ofEpoch) const {
    return arrived[q].load(std::memory_order_acquire) >= ofEpoch;
  }
  /// The sender's messages that overlap partition q.
  plan::Range messagesOf(uint64_t q) const {
    return theirs.messageCut().covering({q * mine.count, (q + 1) * mine.count});
  }

private:
  const Shape mine;
  Shape theirs;
  std::vector<Word> arrived;         // by partition: the last epoch in which it has
  std::vector<uint64_t> overlapping; // messages, by partition
  uint64_t epoch = 0;
  std::vector<uint64_t> left; // of `overlapping`, those that have not come
  std::vector<bool> isHere;   // by message
  uint64_t messagesLeft = 0, firstLeft = 0;
};

} // namespace occl::partitioned
