// The rings of transfers between this rank and one of another island, which mirrors have as they
// have blocks of the arena: docs/decisions/hosts/net-transfers.md#transfers.
#pragma once

#include "runtime/control/records/segment.h"
#include "runtime/net/transport/transport.h"

#include <cstdint>

namespace occl::net {

/// Tails and rings of the mirror that the peer has of this rank, and the head of one ring in the
/// peer's own segment: see Regions.
inline constexpr uint32_t kRingsRegion = 2, kRingHeadRegion = 3;

/// Thread safety: send() is the sending thread's.
class RingCrossing {
public:
  /// `outgoing`: of the transfers to the peer, whose tail and data lie behind `rings`, the begin of
  /// what kRingsRegion is a mirror of. `incoming`: the mirror of that of the transfers from it.
  RingCrossing(const transport::PairRing &outgoing, const std::byte *rings,
               const transport::PairRing &incoming)
      : outgoing(outgoing), incoming(incoming),
        tailOffset(static_cast<uint64_t>(reinterpret_cast<std::byte *>(outgoing.tail) - rings)),
        dataOffset(static_cast<uint64_t>(outgoing.data - rings)) {}

  /// Full: there is more. Damaged: the peer says that it has read what it was not sent.
  enum class Sent : uint8_t { All, Full, Damaged };
  /// Sends what executors have stored since: bytes with their tail, and the head.
  Sent send(Endpoint &endpoint);

private:
  bool sendBytes(Endpoint &endpoint);
  bool sendHead(Endpoint &endpoint);

  const transport::PairRing outgoing, incoming;
  const uint64_t tailOffset, dataOffset; // in the region
  uint64_t tailSent = 0, headSent = 0;
};

} // namespace occl::net
