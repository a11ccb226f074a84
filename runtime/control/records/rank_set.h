// A set of ranks in shared memory.
#pragma once

#include "runtime/sync/atomic.h"

#include <array>
#include <cstdint>
#include <vector>

namespace occl::transport {

/// One writer at a time. A reader that must not see a set half written looks afterwards whether the
/// word that says that the set is valid still says so.
class RankSet {
public:
  static constexpr uint32_t kMaxRanks = 1024;

  void store(const std::vector<bool> &members) {
    for (uint32_t w = 0; w < words.size(); ++w) {
      uint64_t word = 0;
      for (uint32_t bit = 0; bit < 64 && w * 64 + bit < members.size(); ++bit)
        word |= uint64_t{members[w * 64 + bit]} << bit;
      words[w].store(word, std::memory_order_relaxed);
    }
  }
  bool contains(uint32_t rank) const {
    return words[rank / 64].load(std::memory_order_relaxed) >> rank % 64 & 1;
  }

private:
  std::array<Atomic<uint64_t>, kMaxRanks / 64> words{};
};

} // namespace occl::transport
