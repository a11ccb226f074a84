// A ring of memory that requests are sent from.
#include "runtime/net/transport/verbs/staging.h"

namespace occl::net {

std::span<std::byte> Staging::take(uint64_t wanted, uint64_t spare) {
  // Ranges begin on lines of their own, and none wraps around.
  constexpr uint64_t kLine = 64;
  const uint64_t size = bytes.size(), rounded = (wanted + kLine - 1) / kLine * kLine;
  const uint64_t place = tail % size;
  const uint64_t skipped = place + rounded > size ? size - place : 0; // what it would wrap around
  if (tail + skipped + rounded + spare - head > size)
    return {};
  tail += skipped + rounded;
  return bytes.subspan((tail - rounded) % size, wanted);
}

} // namespace occl::net
