#include "test/explore/explorer/fiber.h"

#include <cstdio>
#include <cstdlib>
#include <sys/mman.h>

namespace occl::explore {

StackPool::~StackPool() {
  for (std::byte *stack : free)
    munmap(stack, kBytes);
}

std::byte *StackPool::take() {
  if (!free.empty()) {
    std::byte *stack = free.front();
    free.pop_front();
    return stack;
  }
  void *memory =
      mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED) {
    std::perror("explore: no memory for a stack");
    std::abort();
  }
  return static_cast<std::byte *>(memory);
}

} // namespace occl::explore
