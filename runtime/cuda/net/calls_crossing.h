// Moves what kernels of calls in streams store for ranks of other islands: see
// docs/decisions/gpu/several-machines.md. Calls of protocol Simple, with ordered connectors.
#pragma once

#include "runtime/cuda/net/arenas.h"
#include "runtime/cuda/tables/host_words.h"
#include "runtime/net/slices.h"
#include "runtime/sync/mutex.h"

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace occl::cuda {

/// Thread safety: any, but send() is one thread's.
class CallsCrossing {
public:
  /// isRemote: by rank. firstCall: the number of the first one. The arenas outlive it.
  CallsCrossing(const HostArenas &arenas, const std::vector<bool> &isRemote, uint64_t firstCall);

  /// Where the block of calls of Simple lies in each rank's memory for calls. Before the first
  /// enter().
  void setBlock(uint64_t offset) { blockOffset = offset; }
  /// Calls from that number on whose kernels say `place` have these connections.
  void enter(uint32_t place, uint64_t firstCall, std::shared_ptr<const net::Crossing> crossing);

  /// Puts what has changed for that rank. False: there is more, for which there is no room, or
  /// which is not all seen yet.
  bool send(uint32_t peer, net::Endpoint &endpoint);
  /// Whether the last send() put anything.
  bool hasMoved() const { return puts.hasMoved(); }

private:
  struct Shape {
    uint64_t firstCall;
    std::shared_ptr<const net::Crossing> crossing;
  };
  /// Of a rank: the call whose words cross. Ranks of this island are beyond all calls.
  struct OfPeer {
    uint64_t number = 0;
    bool isOpen = false, isAnnounced = false, whereIsSent = false;
    std::shared_ptr<const net::Crossing> crossing;
    std::vector<net::FlowProgress> sent, received;
  };

  std::shared_ptr<const net::Crossing> crossingOf(uint64_t number);
  bool open(OfPeer &state);
  bool tellBegin(uint32_t peer, OfPeer &state);
  bool tellWhere(uint32_t peer, OfPeer &state);
  bool putBegun(uint32_t peer, uint64_t begun);
  bool sendFlows(uint32_t peer, OfPeer &state, net::Endpoint &endpoint);
  uint64_t blockOf(uint32_t peer, const OfPeer &state) const;

  const HostArenas &arenas;
  ArenaPuts puts;
  std::vector<OfPeer> peers; // by rank
  uint64_t blockOffset = 0;

  Mutex mutex;                                       // guards:
  std::array<std::vector<Shape>, kMaxShapes> shapes; // by place; ascending
};

} // namespace occl::cuda
