// How ranks of several machines learn of each other: all connect to rank 0, which sends each the
// cards of all.
#pragma once

#include "runtime/base/status.h"
#include "runtime/net/rendezvous/handshake.h"
#include "runtime/net/rendezvous/socket.h"
#include "runtime/sync/deadline.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace occl::net {

/// What a rank tells the others of itself. Fixed layout: it is sent as it is.
struct Card {
  Hash host{}; // of its host id: equal for ranks of one island
  Address listener;
  uint64_t segmentBytes = 0, heapBytes = 0;
  uint32_t orderPolicy = 0, layoutVersion = 0;
};

struct Meeting {
  uint32_t rank = 0, numRanks = 0;
  /// Where rank 0 listens, and how the user has said that.
  std::vector<Address> root;
  std::string rootName;
  /// Equal on all ranks; at least 16 characters.
  std::string secret;
  uint64_t job = 0;
  Run run{};
  /// Rank 0 listens already, and goes on until this rank has come: if it does not, it is gone.
  bool isListening = false;
  /// Whether a rank is known to be gone; empty: nothing is known of any.
  std::function<bool(uint32_t rank)> isGone = {};
};

/// What all have in common.
struct Met {
  /// Drawn by rank 0, for this communicator.
  Hash nonce{};
  std::vector<Card> cards; // by rank
  /// Of this rank, for connections of others.
  Descriptor listener;
  /// By rank: the connections by which all have met, rank 0's to all others, and theirs to it. Kept
  /// until there are others: who ends, or gives up, ends them.
  std::vector<Descriptor> meetings;

  bool hasEnded(uint32_t rank) const { return net::hasEnded(meetings[rank]); }
};

/// So long a rank that listened before may not.
inline constexpr std::chrono::milliseconds kMostRefused{300};

/// "rank 3 has ended or given up": PeerFailed.
Status goneRank(uint32_t rank);

/// Returns when all ranks have come; `own` gets this rank's listener. The sizes, the order policy
/// and the layout are the same on all. Errors, of which rank 0 tells all who have come: Timeout
/// naming the ranks that are missing, Mismatch (of these, or a rank that comes twice), PeerFailed
/// naming one that is gone, SystemError. `listener`: of rank 0, if it listens already.
StatusOr<Met> meet(const Meeting &meeting, Card own, const Deadline &deadline,
                   Descriptor listener = {});

/// Of connections within the communicator.
Hash dataKey(const Meeting &meeting, const Met &met);

} // namespace occl::net
