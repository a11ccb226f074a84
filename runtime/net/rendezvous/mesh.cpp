// Each rank connects to all higher ones, then takes the connections of all lower ones.
#include "runtime/net/rendezvous/mesh.h"

#include "runtime/net/rendezvous/handshake.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

namespace occl::net {
namespace {

/// One rank's connections.
class Mesh {
public:
  Mesh(const Meeting &meeting, const Met &met, const std::vector<uint32_t> &others)
      : meeting(meeting), met(met), others(others), key(dataKey(meeting, met)),
        numLower(
            static_cast<size_t>(std::ranges::lower_bound(others, meeting.rank) - others.begin())),
        sockets(meeting.numRanks) {}

  StatusOr<std::vector<Descriptor>> run(const Deadline &deadline) {
    // Higher ranks listen since they have met. The highest takes connections at once, the next one
    // when it has got there, and so on: so all begin at the highest, and each step is one of all
    // ranks. In the other order each rank would wait until all higher ones are through.
    for (size_t i = others.size(); i-- > numLower;) {
      const uint32_t peer = others[i];
      if (Status connected = connect(peer, deadline); !connected.ok())
        return Status(connected.code(), "rank " + std::to_string(meeting.rank) +
                                            " cannot connect to rank " + std::to_string(peer) +
                                            ": " + connected.message());
    }
    if (Status taken = takeLower(deadline); !taken.ok())
      return taken;
    return std::move(sockets);
  }

private:
  Status connect(uint32_t peer, const Deadline &deadline);
  Status takeLower(const Deadline &deadline);
  std::string judge(const Claim &claim) const;

  const Meeting &meeting;
  const Met &met;
  const std::vector<uint32_t> &others;
  const Hash key;
  const size_t numLower;           // of the others
  std::vector<Descriptor> sockets; // by rank
};

Status Mesh::connect(uint32_t peer, const Deadline &deadline) {
  auto socket = connectTo({&met.cards[peer].listener, 1}, deadline);
  if (!socket.ok())
    return socket.status();
  const Claim claim = {Purpose::Data, meeting.rank, peer, meeting.numRanks, meeting.job};
  if (Status known = introduce(*socket, key, claim, deadline); !known.ok())
    return known;
  sockets[peer] = std::move(*socket);
  return {};
}

/// They come in any order; each may come once.
Status Mesh::takeLower(const Deadline &deadline) {
  Reception reception(met.listener, key);
  for (size_t here = 0; here < numLower; ++here) {
    auto guest = reception.next([this](const Claim &claim) { return judge(claim); }, deadline);
    if (!guest.ok()) {
      // The error names the ranks that have not come.
      std::string missing;
      for (uint32_t peer : others)
        if (peer < meeting.rank && !sockets[peer].valid())
          missing += " " + std::to_string(peer);
      return {guest.status().code(), guest.status().message() + "; rank " +
                                         std::to_string(meeting.rank) + " misses:" + missing};
    }
    sockets[guest->from] = std::move(guest->socket);
  }
  return {};
}

std::string Mesh::judge(const Claim &claim) const {
  const std::string who = "rank " + std::to_string(claim.from);
  if (claim.purpose != Purpose::Data || claim.to != meeting.rank ||
      claim.numRanks != meeting.numRanks || !std::ranges::binary_search(others, claim.from) ||
      claim.from > meeting.rank)
    return who + " has come to the wrong rank";
  return sockets[claim.from].valid() ? who + " is there already" : "";
}

} // namespace

StatusOr<std::vector<Descriptor>> connectMesh(const Meeting &meeting, const Met &met,
                                              const std::vector<uint32_t> &others,
                                              const Deadline &deadline) {
  return Mesh(meeting, met, others).run(deadline);
}

} // namespace occl::net
