// The arena: a stack of freed blocks for each size class, over ranges of free bytes.
#include "runtime/memory/arena.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <new>
#include <utility>

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

/// For one block more that is given back.
void Arena::keepRoom(Class &known) {
  if (known.freed.capacity() == known.blocks)
    known.freed.reserve(2 * known.blocks + 1);
}

std::optional<uint64_t> Arena::allocate(uint64_t bytes) {
  if (bytes > total)
    return std::nullopt;
  uint64_t rounded = roundToClass(bytes);
  // The block that was freed last is still in caches.
  Class &known = classes[classOf(rounded)];
  if (!known.freed.empty()) {
    uint64_t offset = known.freed.back();
    known.freed.pop_back();
    inUse += rounded;
    return offset;
  }
  keepRoom(known);
  // Cut one from a range, if need be after the stacks were merged into ranges.
  std::optional<uint64_t> offset = takeFromRanges(rounded);
  if (!offset) {
    mergeStacks();
    offset = takeFromRanges(rounded);
  }
  if (!offset)
    return std::nullopt;
  ++known.blocks;
  inUse += rounded;
  return offset;
}

bool Arena::allocateAt(uint64_t offset, uint64_t bytes) {
  const uint64_t rounded = roundToClass(bytes);
  Class &known = classes[classOf(rounded)];
  keepRoom(known);
  if (!takeFromRange(offset, rounded)) {
    mergeStacks();
    if (!takeFromRange(offset, rounded))
      return false;
  }
  ++known.blocks;
  inUse += rounded;
  return true;
}

void Arena::release(uint64_t offset, uint64_t bytes) {
  uint64_t rounded = roundToClass(bytes);
  inUse -= rounded;
  classes[classOf(rounded)].freed.push_back(offset); // for which there is room
}

std::optional<uint64_t> Arena::takeFromRanges(uint64_t rounded) {
  for (auto it = ranges.begin(); it != ranges.end(); ++it) {
    const auto [offset, bytes] = *it;
    if (bytes < rounded)
      continue;
    auto range = ranges.extract(it);
    range.key() = offset + rounded;
    range.mapped() = bytes - rounded;
    if (bytes > rounded)
      ranges.insert(std::move(range));
    return offset;
  }
  return std::nullopt;
}

/// What is left of the range before the block, and behind it, stays free.
bool Arena::takeFromRange(uint64_t offset, uint64_t rounded) {
  auto it = ranges.upper_bound(offset);
  if (it == ranges.begin())
    return false;
  --it;
  const uint64_t before = offset - it->first;
  if (it->second < before || it->second - before < rounded)
    return false;
  const uint64_t behind = it->second - before - rounded;
  if (behind != 0)
    ranges.emplace(offset + rounded, behind);
  if (before != 0)
    it->second = before;
  else
    ranges.erase(it);
  return true;
}

void Arena::mergeStacks() {
  for (uint32_t c = 0; c < kNumClasses; ++c) {
    // The number of a class has its power of two and the quarters above it.
    uint64_t floor = uint64_t{1} << (c / 4);
    // Each leaves the stack once it is a range, for which there may be no memory.
    for (; !classes[c].freed.empty(); --classes[c].blocks, classes[c].freed.pop_back())
      returnRange(classes[c].freed.back(), floor + c % 4 * (floor / 4));
  }
}

void Arena::merge() noexcept {
  try {
    mergeStacks();
  } catch (const std::bad_alloc &) { // the rest stays on the stacks
  }
}

void Arena::returnRange(uint64_t offset, uint64_t bytes) {
  const auto next = ranges.lower_bound(offset);
  const auto previous = next == ranges.begin() ? ranges.end() : std::prev(next);
  const bool joinsNext = next != ranges.end() && offset + bytes == next->first;
  const bool joinsPrevious =
      previous != ranges.end() && previous->first + previous->second == offset;
  // Join the range before it, and the one behind.
  if (joinsPrevious) {
    previous->second += bytes + (joinsNext ? next->second : 0);
    if (joinsNext)
      ranges.erase(next);
  } else if (joinsNext) {
    auto range = ranges.extract(next);
    range.key() = offset;
    range.mapped() += bytes;
    ranges.insert(std::move(range));
  } else {
    ranges.emplace(offset, bytes);
  }
}

} // namespace occl::transport
