// How one side of a partitioned transfer divides its buffer.
#pragma once

#include "plan/cover.h"
#include "runtime/base/data_type.h"

#include <algorithm>
#include <cstdint>
#include <string>

namespace occl::partitioned {

/// What a request may have, so that no product exceeds 2^62.
inline constexpr uint64_t kMostPartitions = uint64_t{1} << 20;
inline constexpr uint64_t kMostElements = uint64_t{1} << 58;

/// Partitions of `count` elements each, one behind the other. The sender's are sent in messages of
/// `perMessage` partitions, of which the last may have fewer.
struct Shape {
  uint64_t partitions = 0;
  uint64_t count = 0;
  DataType type = DataType::Uint8;
  uint64_t perMessage = 1;

  constexpr uint64_t elements() const { return partitions * count; }
  constexpr uint64_t bytes() const { return elements() * sizeOf(type); }
  /// Also where partitions have no elements: each is to be marked.
  constexpr uint64_t numMessages() const {
    return partitions / perMessage + (partitions % perMessage != 0 ? 1 : 0);
  }
  constexpr uint64_t messageOf(uint64_t partition) const { return partition / perMessage; }
  /// Partitions of message m.
  constexpr plan::Range partitionsOf(uint64_t m) const {
    return {m * perMessage, std::min(partitions, (m + 1) * perMessage)};
  }
  /// Elements of messages [first, end).
  constexpr plan::Range elementsOf(plan::Range messages) const {
    return {messages.begin * perMessage * count,
            std::min(partitions, messages.end * perMessage) * count};
  }
  constexpr plan::UniformCut cut() const { return {elements(), count}; }
  constexpr plan::UniformCut messageCut() const { return {elements(), perMessage * count}; }

  /// Whether sizes are such that nothing of the above overflows.
  constexpr bool isSound() const {
    return partitions <= kMostPartitions && count <= kMostElements &&
           (count == 0 || partitions <= kMostElements / count) && perMessage != 0 &&
           perMessage <= std::max<uint64_t>(partitions, 1) &&
           static_cast<unsigned>(type) < kNumDataTypes;
  }
  /// Whether what the one side sends is what the other receives: as many elements of one type. No
  /// partitions fit to none alone.
  constexpr bool fits(const Shape &other) const {
    return type == other.type && elements() == other.elements() &&
           (partitions == 0) == (other.partitions == 0);
  }
  /// "4 partitions of 100 float32".
  std::string describe() const {
    return std::to_string(partitions) + (partitions == 1 ? " partition of " : " partitions of ") +
           std::to_string(count) + " " + nameOf(type);
  }
};

} // namespace occl::partitioned
