// Puts the bytes of rings of transfers, and heads of such rings, onto a connection.
#include "runtime/net/ring_crossing.h"

#include "runtime/sync/atomic.h"

#include <algorithm>

namespace occl::net {

RingCrossing::Sent RingCrossing::send(Endpoint &endpoint) {
  // The source writes over what has been read: nothing may be that was not sent.
  if (outgoing.head->bytes.load(std::memory_order_acquire) > tailSent)
    return Sent::Damaged;
  return sendHead(endpoint) && sendBytes(endpoint) ? Sent::All : Sent::Full;
}

/// Each piece with the tail that ends it.
bool RingCrossing::sendBytes(Endpoint &endpoint) {
  // Acquire, as the bytes below the tail are read after it.
  const uint64_t tail = outgoing.tail->bytes.load(std::memory_order_acquire);
  while (tailSent != tail) {
    // A piece ends where the ring wraps around, and fits into a put.
    const uint64_t begin = tailSent & (outgoing.size - 1),
                   bytes = std::min({tail - tailSent, outgoing.size - begin, uint64_t{kMaxPut}});
    touchShared(outgoing.data);
    Put put;
    put.region = kRingsRegion;
    put.offset = dataOffset + begin;
    put.bytes = {outgoing.data + begin, bytes};
    put.hasWord = true;
    put.wordOffset = tailOffset;
    put.word = tailSent + bytes;
    if (endpoint.put(put) == Posted::Full)
      return false;
    tailSent += bytes;
  }
  return true;
}

bool RingCrossing::sendHead(Endpoint &endpoint) {
  // Acquire, so that data are out of the mirror before the peer writes over them.
  const uint64_t head = incoming.head->bytes.load(std::memory_order_acquire);
  if (head == headSent)
    return true;
  Put put;
  put.region = kRingHeadRegion;
  put.hasWord = true;
  put.word = head;
  if (endpoint.put(put) == Posted::Full)
    return false;
  headSent = head;
  return true;
}

} // namespace occl::net
