// What a host and a kernel that stays for its next call (in_stream_standby.cuh) tell each other, in
// pinned memory.
//
// The host rings: it stores a call in a bell, a line that one thread block polls. Each word of it
// has a mark of the call, so it is whole when all marks are right. The first thread block, which
// leads, decides when the kernel leaves; so its bell is rung first, and the others when it is known
// to take the call. Who leads and wants to leave says so, executes a sequentially consistent fence,
// and looks at its bell once more; who rings executes such a fence behind the first bell and looks
// at that word: one of the two sees the other. If both do, the host waits for what the kernel
// decides, which takes it a trip.
#pragma once

#include "runtime/base/host_device.h"

#include <cstdint>

namespace occl::cuda {

struct alignas(64) Bell {
  static constexpr uint32_t kWords = 3;
  /// Input, output, number of the invocation: 48 bits each, below the mark.
  uint64_t words[kWords];
};

inline constexpr uint32_t kBellBits = 48;
/// Of a call, whose ticket is one more than that of the one before. Never zero.
OCCL_INLINE uint64_t bellMark(uint64_t ticket) { return ticket % 65535 + 1; }
OCCL_INLINE uint64_t bellWord(uint64_t mark, uint64_t value) { return mark << kBellBits | value; }
OCCL_INLINE uint64_t markIn(uint64_t word) { return word >> kBellBits; }
OCCL_INLINE uint64_t valueIn(uint64_t word) { return word & ((1ull << kBellBits) - 1); }

/// What the kernel whose first call had the ticket `session` says of itself.
enum class Presence : uint64_t { There = 0, Leaving = 1, Gone = 2 };
OCCL_INLINE uint64_t presenceWord(uint64_t session, Presence presence) {
  return session << 2 | static_cast<uint64_t>(presence);
}

} // namespace occl::cuda
