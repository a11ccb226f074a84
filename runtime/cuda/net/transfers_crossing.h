// Moves what kernels of transfers store for ranks of other islands (pair_slots.h): pieces to their
// slots there, and which uses of slots are over.
#pragma once

#include "runtime/cuda/net/arenas.h"
#include "runtime/cuda/transfer/pair_slots.h"

#include <cstdint>
#include <vector>

namespace occl::cuda {

/// One thread.
class TransfersCrossing {
public:
  /// The arenas outlive it.
  TransfersCrossing(const HostArenas &arenas, const PairGeometry &pairs)
      : arenas(arenas), puts(arenas), pairs(pairs), peers(arenas.numRanks()) {}

  /// Puts what has changed for that rank. False: there is more, and no room for it now.
  bool send(uint32_t peer, net::Endpoint &endpoint);
  /// Whether the last send() put anything.
  bool hasMoved() const { return puts.hasMoved(); }

private:
  /// Of a pair: pieces that the peer has, bytes of the next one, what is left of the
  /// transfer that this one belongs to, and pieces from the peer of which it knows that their slots
  /// are free.
  struct Progress {
    uint64_t sent = 0, ofPiece = 0, left = 0, emptied = 0;
  };
  bool sendPieces(uint32_t peer, Progress &progress);
  bool sendEmptied(uint32_t peer, Progress &progress);

  const HostArenas &arenas;
  ArenaPuts puts;
  const PairGeometry pairs;
  std::vector<Progress> peers;
};

} // namespace occl::cuda
