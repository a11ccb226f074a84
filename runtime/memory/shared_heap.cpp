// The heap of occlMemAlloc in shared memory; its own records are in private memory.
#include "runtime/memory/shared_heap.h"

#include <algorithm>
#include <mutex>

namespace occl::transport {

void *SharedHeap::allocate(uint64_t bytes) {
  if (bytes > memory.size()) // rounded up to a size class it might overflow
    return nullptr;
  bytes = std::max<uint64_t>(bytes, 1);
  std::lock_guard lock(mutex);
  auto offset = blocks.allocate(bytes);
  if (!offset)
    return nullptr;
  sizes[*offset] = bytes;
  return memory.data() + *offset;
}

bool SharedHeap::release(void *block) {
  // Only an address at which a block begins is freed.
  auto offset = offsetOf(block, 1);
  std::lock_guard lock(mutex);
  auto found = offset ? sizes.find(*offset) : sizes.end();
  if (found == sizes.end())
    return false;
  blocks.release(found->first, found->second);
  sizes.erase(found);
  return true;
}

std::optional<uint64_t> SharedHeap::offsetOf(const void *address, uint64_t bytes) const {
  auto at = reinterpret_cast<uint64_t>(address), begin = reinterpret_cast<uint64_t>(memory.data());
  if (at < begin || at - begin > memory.size() || bytes > memory.size() - (at - begin))
    return std::nullopt;
  return at - begin;
}

} // namespace occl::transport
