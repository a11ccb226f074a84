// Puts from the mirror of a peer's arena: bytes, and the word that says that they are there.
#include "runtime/cuda/net/arenas.h"

#include "runtime/net/network.h"

namespace occl::cuda {

bool ArenaPuts::bytes(std::span<const std::byte> of) {
  net::Put what;
  what.region = net::kHeapRegion;
  what.offset = arenas.offsetOf(peer, of.data());
  what.bytes = of;
  return put(what);
}

bool ArenaPuts::wordBehind(std::span<const std::byte> before, const uint64_t *place,
                           uint64_t value) {
  net::Put what;
  what.region = net::kHeapRegion;
  what.offset = before.empty() ? 0 : arenas.offsetOf(peer, before.data());
  what.bytes = before;
  what.hasWord = true;
  what.wordOffset = arenas.offsetOf(peer, place);
  what.word = value;
  return put(what);
}

bool ArenaPuts::put(const net::Put &what) {
  // A connection that is down takes everything: nobody is to wait for room there.
  const net::Posted posted = endpoint->put(what);
  moved |= posted == net::Posted::Yes;
  return posted != net::Posted::Full;
}

} // namespace occl::cuda
