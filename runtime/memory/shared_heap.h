// Memory of a rank's user that all ranks can access where they map the rank's segment.
#pragma once

#include "runtime/memory/arena.h"
#include "runtime/sync/mutex.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>

namespace occl::transport {

/// Over the owner's mapping of its heap. Touches the memory only as its user does. Thread safety:
/// any.
class SharedHeap {
public:
  explicit SharedHeap(std::span<std::byte> memory) : memory(memory), blocks(memory.size()) {}

  /// At least `bytes`, aligned to 128; nullptr if there is no such range free.
  void *allocate(uint64_t bytes);
  /// False if `block` is nothing that allocate() has returned and that is still allocated.
  bool release(void *block);

  /// Where [address, address + bytes) begins in the heap, if it lies in it.
  std::optional<uint64_t> offsetOf(const void *address, uint64_t bytes) const;
  uint64_t size() const { return memory.size(); }

private:
  const std::span<std::byte> memory;
  Mutex mutex; // guards all below
  Arena blocks;
  std::unordered_map<uint64_t, uint64_t> sizes; // of allocated blocks, by offset
};

} // namespace occl::transport
