#include "runtime/cuda/awaited_ends.h"

#include <mutex>

namespace occl::cuda {

AwaitedEnds::AwaitedEnds(uint64_t *memory, uint32_t wordsPerCall) {
  free.reserve(kCalls);
  for (uint32_t call = kCalls; call-- != 0;)
    free.push_back(memory + uint64_t(call) * wordsPerCall);
}

std::optional<EndWords> AwaitedEnds::lend() {
  std::lock_guard lock(mutex);
  if (free.empty())
    return std::nullopt;
  EndWords ended{free.back(), ++lastTicket};
  free.pop_back();
  return ended;
}

void AwaitedEnds::giveBack(const EndWords &ended) {
  std::lock_guard lock(mutex);
  free.push_back(ended.words);
}

} // namespace occl::cuda
