// Rank 0 gathers the cards of all ranks and sends them around; the others join it.
#include "runtime/net/rendezvous/rendezvous.h"

#include <array>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

namespace occl::net {
namespace {

static_assert(std::is_trivially_copyable_v<Card> && sizeof(Card) == 80);

/// What rank 0 sends to each rank before the cards.
struct Verdict {
  uint32_t code = 0; // 0: the cards follow
  uint32_t numRanks = 0;
  Hash nonce{};
  std::array<char, 472> text{};
};
static_assert(sizeof(Verdict) == 512);

Hash keyOf(std::string_view secret) {
  constexpr std::string_view kUse = "OCCL rendezvous";
  return authenticate(std::as_bytes(std::span(secret)), std::as_bytes(std::span(kUse)));
}

std::string listMissing(const std::vector<Descriptor> &sockets) {
  std::string text;
  size_t number = 0;
  // A long list ends with dots.
  constexpr size_t kMostNamed = 16;
  for (size_t r = 1; r < sockets.size(); ++r)
    if (!sockets[r].valid() && ++number <= kMostNamed)
      text += (number == 1 ? "" : ", ") + std::to_string(r);
  return (number == 1 ? "rank " : "ranks ") + text + (number > kMostNamed ? ", ..." : "");
}

Status differs(uint32_t rank, const char *what, uint64_t theirs, uint64_t mine) {
  return {StatusCode::Mismatch, "rank " + std::to_string(rank) + " has " + what + " " +
                                    std::to_string(theirs) + ", rank 0 has " +
                                    std::to_string(mine)};
}

Status compare(uint32_t rank, const Card &theirs, const Card &mine) {
  if (theirs.layoutVersion != mine.layoutVersion)
    return differs(rank, "layout version", theirs.layoutVersion, mine.layoutVersion);
  if (theirs.segmentBytes != mine.segmentBytes)
    return differs(rank, "segment bytes", theirs.segmentBytes, mine.segmentBytes);
  if (theirs.heapBytes != mine.heapBytes)
    return differs(rank, "heap bytes", theirs.heapBytes, mine.heapBytes);
  if (theirs.orderPolicy != mine.orderPolicy)
    return differs(rank, "order policy", theirs.orderPolicy, mine.orderPolicy);
  return {};
}

/// Why no more than these are waited for.
Status whyGone(const Meeting &meeting, const std::vector<Descriptor> &sockets) {
  for (uint32_t r = 0; r < meeting.numRanks; ++r)
    if (r != meeting.rank &&
        (hasEnded(sockets[r]) || (!sockets[r].valid() && meeting.isGone && meeting.isGone(r))))
      return goneRank(r);
  return {};
}

/// Rank 0's side.
class Root {
public:
  Root(const Meeting &meeting, Met &met) : meeting(meeting), met(met), sockets(meeting.numRanks) {}

  Status run(const Deadline &deadline) {
    Status status = gather(deadline);
    // All ranks that have come get the verdict, a bad one as well.
    Verdict verdict;
    verdict.code = static_cast<uint32_t>(status.code());
    verdict.numRanks = meeting.numRanks;
    verdict.nonce = met.nonce;
    status.message().copy(verdict.text.data(), verdict.text.size() - 1);
    // After a failure no rank is waited for long. The highest ranks go first: the others need them
    // to connect (mesh.h).
    const Deadline soon(std::chrono::seconds(1));
    for (uint32_t r = meeting.numRanks - 1; r > 0; --r) {
      if (!sockets[r].valid())
        continue;
      Status sent = sendRecord(sockets[r], verdict, status.ok() ? deadline : soon);
      if (sent.ok() && status.ok())
        sent = sendAll(sockets[r], std::as_bytes(std::span(met.cards)), deadline);
      if (!sent.ok() && status.ok())
        status = {sent.code(), "rank " + std::to_string(r) + ": " + sent.message()};
    }
    met.meetings = std::move(sockets);
    return status;
  }

private:
  /// A rank that reaches rank 0 by loopback has no other address to tell.
  Status checkAddresses() const {
    const auto &cards = met.cards;
    const auto isLocal = [](const Card &card) { return card.listener.isLoopback(); };
    for (size_t r = 1; r < cards.size(); ++r)
      for (size_t other = 1; other < cards.size(); ++other)
        if (isLocal(cards[r]) && !isLocal(cards[other]) && cards[r].host != cards[other].host)
          return {StatusCode::InvalidArgument,
                  "rank " + std::to_string(r) + " reaches rank 0 as " + cards[r].listener.text() +
                      ", so rank " + std::to_string(other) +
                      " of another machine cannot reach it: the name in OCCL_COMM_ID leads to "
                      "loopback there; write an address"};
    return {};
  }

  Status gather(const Deadline &deadline) {
    Reception reception(met.listener, keyOf(meeting.secret));
    const Patience patience(deadline, [this] { return whyGone(meeting, sockets); });
    for (uint32_t here = 1; here < meeting.numRanks; ++here) {
      auto guest = reception.next([&](const Claim &claim) { return judge(claim); }, patience);
      // The error names the missing ranks.
      if (guest.status().code() == StatusCode::PeerFailed)
        return {StatusCode::PeerFailed,
                guest.status().message() + " before all had come to " + meeting.rootName};
      if (guest.status().code() == StatusCode::Timeout)
        return {StatusCode::Timeout, listMissing(sockets) + " did not come to " + meeting.rootName +
                                         " in time" + reception.turnedAway()};
      if (!guest.ok())
        return guest.status();
      const uint32_t r = guest->from;
      sockets[r] = std::move(guest->socket);
      // The card follows the handshake.
      if (Status got = receiveRecord(sockets[r], met.cards[r], patience); !got.ok())
        return {got.code(), "rank " + std::to_string(r) + ": " + got.message()};
      if (Status same = compare(r, met.cards[r], met.cards[0]); !same.ok())
        return same;
    }
    return checkAddresses();
  }

  Reception::Refusal judge(const Claim &claim) const {
    const std::string who = "rank " + std::to_string(claim.from);
    // Whatever else it says, it has strayed, as one of an older run on the same port.
    if (claim.job != 0 && meeting.job != 0 && claim.job != meeting.job) {
      Reception::Refusal refusal = who + " belongs to another job than rank 0";
      refusal.isOfOtherJob = true;
      return refusal;
    }
    // It waits for a meeting that its own run will not have any more, or rank 0 does.
    if (areOfDifferentRuns(claim.run, meeting.run)) {
      Reception::Refusal refusal = who + " is of another run of this job than rank 0: it had " +
                                   std::to_string(claim.run.meetings) +
                                   " communicators of this name before, rank 0 had " +
                                   std::to_string(meeting.run.meetings);
      refusal.isOfOtherJob = true;
      return refusal;
    }
    if (claim.purpose != Purpose::Card || claim.to != 0)
      return who + " has come to the wrong rank";
    if (claim.numRanks != meeting.numRanks)
      return who + " is of " + std::to_string(claim.numRanks) + " ranks, rank 0 is of " +
             std::to_string(meeting.numRanks);
    if (claim.from == 0 || claim.from >= sockets.size() || sockets[claim.from].valid())
      return who + " is there already";
    return "";
  }

  const Meeting &meeting;
  Met &met;
  std::vector<Descriptor> sockets; // by rank
};

/// The own listener takes any free port of the address by which this rank has reached rank 0: by
/// that the others reach this machine, too.
Status listenWhereReached(const Descriptor &socket, Card &own, Met &met) {
  auto address = addressOf(socket);
  if (!address.ok())
    return address.status();
  address->port = 0;
  auto listener = listenOn(*address);
  if (!listener.ok())
    return listener.status();
  auto bound = addressOf(*listener);
  if (!bound.ok())
    return bound.status();
  own.listener = *bound;
  met.listener = std::move(*listener);
  return {};
}

Status joinRoot(const Meeting &meeting, Card own, Met &met, const Deadline &deadline) {
  const Patience::WhyGone whyGone = [&] {
    return meeting.isGone && meeting.isGone(0) ? goneRank(0) : Status();
  };
  const Claim claim = {Purpose::Card, meeting.rank, 0, meeting.numRanks, meeting.job, meeting.run};
  auto socket = connectAndIntroduce(meeting.root, keyOf(meeting.secret), claim, {deadline, whyGone},
                                    meeting.isListening ? kMostRefused : kNoDeadline);
  const auto failed = [&](const Status &status) {
    return Status(status.code(), "rank 0, at " + meeting.rootName + ": " + status.message());
  };
  if (!socket.ok())
    return failed(socket.status());
  const auto root = addressOfPeer(*socket);
  Status status = root.ok() ? listenWhereReached(*socket, own, met) : root.status();
  if (!status.ok())
    return status;
  // Rank 0 waits as long as this rank for those who are missing, and then says who they are, or
  // sends the cards of all.
  const Patience later(Deadline(std::chrono::ceil<std::chrono::milliseconds>(deadline.remaining()) +
                                std::chrono::seconds(2)),
                       whyGone);
  // Tell the card, and wait for the verdict.
  Verdict verdict;
  status = sendRecord(*socket, own, later);
  if (status.ok())
    status = receiveRecord(*socket, verdict, later);
  if (!status.ok())
    return failed(status);
  // The text of the verdict may lack its end.
  verdict.text.back() = 0;
  if (verdict.code != 0)
    return {static_cast<StatusCode>(verdict.code), verdict.text.data()};
  // The verdict is good, and the cards of all follow.
  met.nonce = verdict.nonce;
  Status got = receiveAll(*socket, std::as_writable_bytes(std::span(met.cards)), later);
  // As this rank reaches it, whatever its name means there.
  met.cards[0].listener = *root;
  met.meetings[0] = std::move(*socket);
  return got;
}

} // namespace

Status goneRank(uint32_t rank) {
  return {StatusCode::PeerFailed, "rank " + std::to_string(rank) + " has ended or given up"};
}

StatusOr<Met> meet(const Meeting &meeting, Card own, const Deadline &deadline,
                   Descriptor listener) {
  Met met;
  met.cards.resize(meeting.numRanks);
  met.meetings.resize(meeting.numRanks);
  if (meeting.rank != 0) {
    if (Status joined = joinRoot(meeting, own, met, deadline); !joined.ok())
      return joined;
    return met;
  }
  // Rank 0 draws the nonce and listens where the others look for it.
  auto nonce = drawHash();
  if (!nonce.ok())
    return nonce.status();
  met.nonce = *nonce;
  if (!listener.valid()) {
    auto made = listenOnPort(meeting.root.front().port); // its name may mean loopback to it
    if (!made.ok())
      return made.status();
    listener = std::move(*made);
  }
  met.listener = std::move(listener);
  own.listener = meeting.root.front();
  met.cards[0] = own;
  if (Status gathered = Root(meeting, met).run(deadline); !gathered.ok())
    return gathered;
  return met;
}

Hash dataKey(const Meeting &meeting, const Met &met) {
  return authenticate(std::as_bytes(std::span(std::string_view(meeting.secret))), met.nonce);
}

} // namespace occl::net
