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
  Mesh(const Meeting &meeting, Met &met, const std::vector<uint32_t> &others)
      : meeting(meeting), met(met), others(others), key(dataKey(meeting, met)),
        numLower(
            static_cast<size_t>(std::ranges::lower_bound(others, meeting.rank) - others.begin())),
        sockets(meeting.numRanks) {}

  StatusOr<std::vector<Descriptor>> run(const Deadline &deadline) {
    const Patience patience(deadline, [this] { return whyGone(); });
    // Higher ranks listen since they have met. The highest takes connections at once, the next one
    // when it has got there, and so on: so all begin at the highest, and each step is one of all
    // ranks. In the other order each rank would wait until all higher ones are through.
    for (size_t i = others.size(); i-- > numLower;) {
      const uint32_t peer = others[i];
      if (Status connected = connect(peer, patience); !connected.ok())
        return Status(connected.code(), "rank " + std::to_string(meeting.rank) +
                                            " cannot connect to rank " + std::to_string(peer) +
                                            ": " + connected.message());
    }
    if (Status taken = takeLower(patience); !taken.ok())
      return taken;
    return std::move(sockets);
  }

private:
  Status connect(uint32_t peer, const Patience &patience);
  Status takeLower(const Patience &patience);
  void keep(uint32_t peer, Descriptor socket);
  Status whyGone() const;
  std::string judge(const Claim &claim) const;

  const Meeting &meeting;
  Met &met;
  const std::vector<uint32_t> &others;
  const Hash key;
  const size_t numLower;           // of the others
  std::vector<Descriptor> sockets; // by rank
};

Status Mesh::connect(uint32_t peer, const Patience &patience) {
  const Claim claim = {Purpose::Data, meeting.rank, peer, meeting.numRanks, meeting.job};
  // It listened before its card was sent around.
  auto socket =
      connectAndIntroduce({&met.cards[peer].listener, 1}, key, claim, patience, kMostRefused);
  if (!socket.ok())
    return socket.status();
  keep(peer, std::move(*socket));
  return {};
}

void Mesh::keep(uint32_t peer, Descriptor socket) {
  sockets[peer] = std::move(socket);
  // The peer has judged, so it looks at this one, too. It is rank 0 that has many.
  if (meeting.rank == 0)
    met.meetings[peer] = Descriptor();
}

/// Who is found to be gone here closes all its connections, so the others find out, too.
Status Mesh::whyGone() const {
  for (uint32_t peer : others)
    if (hasEnded(sockets[peer].valid() ? sockets[peer] : met.meetings[peer]) ||
        (meeting.isGone && meeting.isGone(peer)))
      return goneRank(peer);
  return {};
}

/// They come in any order; each may come once.
Status Mesh::takeLower(const Patience &patience) {
  Reception reception(met.listener, key);
  for (size_t here = 0; here < numLower; ++here) {
    auto guest = reception.next([this](const Claim &claim) { return judge(claim); }, patience);
    if (!guest.ok()) {
      // The error names the ranks that have not come.
      std::string missing;
      for (uint32_t peer : others)
        if (peer < meeting.rank && !sockets[peer].valid())
          missing += " " + std::to_string(peer);
      return {guest.status().code(), guest.status().message() + "; rank " +
                                         std::to_string(meeting.rank) + " misses:" + missing};
    }
    keep(guest->from, std::move(guest->socket));
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

StatusOr<std::vector<Descriptor>> connectMesh(const Meeting &meeting, Met &met,
                                              const std::vector<uint32_t> &others,
                                              const Deadline &deadline) {
  return Mesh(meeting, met, others).run(deadline);
}

} // namespace occl::net
