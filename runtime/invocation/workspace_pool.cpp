// Private memory of invocations, kept for the next one of its size class.
#include "runtime/invocation/workspace_pool.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <new>

namespace occl::daemon {

WorkspacePool::~WorkspacePool() {
  for (auto &[bytes, stack] : stacks)
    for (std::byte *block : stack)
      std::free(block);
}

uint64_t WorkspacePool::classOf(uint64_t bytes) {
  return std::bit_ceil(std::max<uint64_t>(bytes, 256));
}

std::byte *WorkspacePool::acquire(uint64_t bytes) {
  try {
    std::vector<std::byte *> &stack = stacks[classOf(bytes)];
    if (stack.empty())
      return static_cast<std::byte *>(std::aligned_alloc(kAlignment, classOf(bytes)));
    std::byte *block = stack.back();
    stack.pop_back();
    return block;
  } catch (const std::bad_alloc &) {
    return nullptr;
  }
}

void WorkspacePool::release(std::byte *block, uint64_t bytes) {
  try {
    stacks[classOf(bytes)].push_back(block);
  } catch (const std::bad_alloc &) { // it cannot be kept
    std::free(block);
  }
}

} // namespace occl::daemon
