// The arena: a stack of freed blocks for each size class, over ranges of free bytes.
#include "runtime/memory/arena.h"

#include <algorithm>
#include <bit>
#include <iterator>

namespace occl::transport {

Arena::Arena(uint64_t bytes) : total(bytes / kAlignment * kAlignment) {
  if (total != 0)
    ranges.emplace(0, total);
}

uint64_t Arena::roundToClass(uint64_t bytes) {
  bytes = std::max(bytes, 4 * kAlignment);
  // A quarter of the power of two below is the step; it is at least kAlignment.
  uint64_t step = std::bit_floor(bytes) / 4;
  return (bytes + step - 1) / step * step;
}

uint32_t Arena::classOf(uint64_t rounded) {
  uint64_t floor = std::bit_floor(rounded);
  auto quarter = static_cast<uint32_t>((rounded - floor) / (floor / 4));
  return 4 * static_cast<uint32_t>(std::countr_zero(floor)) + quarter;
}

std::optional<uint64_t> Arena::allocate(uint64_t bytes) {
  if (bytes > total)
    return std::nullopt;
  uint64_t rounded = roundToClass(bytes);
  // The block that was freed last is still in caches.
  std::vector<uint64_t> &stack = stacks[classOf(rounded)];
  if (!stack.empty()) {
    uint64_t offset = stack.back();
    stack.pop_back();
    inUse += rounded;
    return offset;
  }
  // Cut one from a range, if need be after the stacks were merged into ranges.
  std::optional<uint64_t> offset = takeFromRanges(rounded);
  if (!offset) {
    mergeStacks();
    offset = takeFromRanges(rounded);
  }
  if (offset)
    inUse += rounded;
  return offset;
}

void Arena::release(uint64_t offset, uint64_t bytes) {
  uint64_t rounded = roundToClass(bytes);
  inUse -= rounded;
  stacks[classOf(rounded)].push_back(offset);
}

std::optional<uint64_t> Arena::takeFromRanges(uint64_t rounded) {
  for (auto it = ranges.begin(); it != ranges.end(); ++it) {
    auto [offset, bytes] = *it;
    if (bytes < rounded)
      continue;
    ranges.erase(it);
    if (bytes > rounded)
      ranges.emplace(offset + rounded, bytes - rounded);
    return offset;
  }
  return std::nullopt;
}

void Arena::mergeStacks() {
  for (uint32_t c = 0; c < kNumClasses; ++c) {
    // The number of a class has its power of two and the quarters above it.
    uint64_t floor = uint64_t{1} << (c / 4);
    for (uint64_t offset : stacks[c])
      returnRange(offset, floor + c % 4 * (floor / 4));
    stacks[c].clear();
  }
}

void Arena::returnRange(uint64_t offset, uint64_t bytes) {
  auto next = ranges.lower_bound(offset);
  // Join the range behind it, then the one before.
  if (next != ranges.end() && offset + bytes == next->first) {
    bytes += next->second;
    next = ranges.erase(next);
  }
  if (next != ranges.begin()) {
    auto previous = std::prev(next);
    if (previous->first + previous->second == offset) {
      previous->second += bytes;
      return;
    }
  }
  ranges.emplace(offset, bytes);
}

} // namespace occl::transport
