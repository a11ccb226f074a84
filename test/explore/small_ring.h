// For explored tests of rings: one with room for two lines, and a reader that checks what comes.
#pragma once

#include "runtime/sync/thread.h"
#include "runtime/transfer/pair_ring.h"
#include "test/explore/explorer/explore.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace occl::explore {

struct SmallRing {
  transport::RingPosition tail, head;
  alignas(64) std::array<std::byte, 2 * transfer::kLineBytes> data{};

  transport::PairRing ring() { return {&tail, &head, data.data(), data.size()}; }
  std::byte *begin() { return reinterpret_cast<std::byte *>(this); }
};

/// Reads the numbers from 1 to `number`, each in a line of its own of which it looks at a part.
inline void readNumbers(const transport::PairRing &memory, uint64_t number) {
  transfer::RingSink ring(memory);
  for (uint64_t i = 0; i < number; ++i) {
    while (*ring.available() == 0)
      yieldProcessor();
    uint64_t value = 0;
    ring.look(&value, sizeof value);
    ring.skip(sizeof value);
    ring.release();
    require(value == i + 1, "wrong data");
  }
}

} // namespace occl::explore
