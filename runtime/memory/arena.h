// Hands out blocks of a rank's arena. A block is all that an invocation needs, so whoever has one
// waits for no other.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace occl::transport {

/// Offsets only: never touches the memory. Sizes are rounded up to classes, four to a power of two;
/// a freed block goes on the stack of its class, and the one freed last, still warm in the caches,
/// is handed out first. When no block is left the stacks are merged into whole free ranges. Thread
/// safety: none.
class Arena {
public:
  static constexpr uint64_t kAlignment = 128;

  explicit Arena(uint64_t bytes);

  /// The offset of a block of at least `bytes`, aligned to kAlignment, or nothing if none is free
  /// now. If it throws there is no memory for its own lists, and no block was taken.
  std::optional<uint64_t> allocate(uint64_t bytes);
  /// The block that begins at this offset, which is aligned; false if some of it is taken. As
  /// allocate() otherwise.
  bool allocateAt(uint64_t offset, uint64_t bytes);
  /// `offset` and `bytes` as in the call that has taken it. Needs no memory.
  void release(uint64_t offset, uint64_t bytes);

  /// Makes whole free ranges of freed blocks, as far as there is memory for these: what is handed
  /// out next lies before all else that is free.
  void merge() noexcept;

  /// Whether a block of this size fits into the arena when nothing else is in it.
  bool canEverFit(uint64_t bytes) const { return roundToClass(bytes) <= total; }
  uint64_t size() const { return total; }
  uint64_t bytesInUse() const { return inUse; }

  /// What a block of `bytes` takes.
  static uint64_t roundToClass(uint64_t bytes);

private:
  static constexpr uint32_t kNumClasses = 4 * 64;

  struct Class {
    std::vector<uint64_t> freed; // offsets, the last one first
    size_t blocks = 0;           // that were cut and not merged, freed or not
  };

  static uint32_t classOf(uint64_t rounded);
  static void keepRoom(Class &known);
  std::optional<uint64_t> takeFromRanges(uint64_t rounded);
  bool takeFromRange(uint64_t offset, uint64_t rounded);
  void mergeStacks();
  void returnRange(uint64_t offset, uint64_t bytes);

  uint64_t total;
  uint64_t inUse = 0;
  std::array<Class, kNumClasses> classes;
  std::map<uint64_t, uint64_t> ranges; // free: offset -> bytes
};

} // namespace occl::transport
