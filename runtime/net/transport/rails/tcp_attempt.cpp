#include "runtime/net/transport/rails/tcp_attempt.h"

#include "runtime/net/transport/rails/connecting.h"
#include "runtime/net/transport/rails/offer.h"
#include "runtime/net/transport/rails/pairs.h"
#include "runtime/net/transport/tcp.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace occl::net {
namespace {

/// Of a pair, to each other. Fixed layout.
struct TcpAddress {
  RailPairs pairs;   // the lower rank's word
  uint16_t port = 0; // of the higher rank; 0: it does not listen
  std::array<uint16_t, 3> unused{};
  Hash token{};
};

/// The lower rank is the first of a pair, says which addresses make rails, and connects.
class TcpAttempt final : public Attempt {
public:
  TcpAttempt(const RankPair &pair, const TcpOffer &mine, const TcpOffer &theirs, const Address &own,
             const Address &peer);

  AttemptBytes address() const override;
  Status connect(const AttemptBytes &ofPeer) override;
  StatusOr<bool> tryOut() override;
  bool worksAlready() const override { return true; }
  AttemptBytes tried() const override { return bytesOf<AttemptBytes>(working()); }
  void settle(const AttemptBytes &ofPeer) override;
  std::string text() const override;
  std::unique_ptr<Endpoint> finish(bootstrap::Descriptor met) override;

private:
  using Working = std::array<bool, kMostRails>;
  struct Told {
    std::array<uint8_t, kMostRails> works{};
  };

  bool isMet(uint32_t index) const { return index == 0 && pairs.pairs[0].isAsMet != 0; }
  Told working() const;
  void callAll(uint16_t port);
  RailSockets &sockets() { return caller ? caller->sockets : host->sockets; }
  std::string nameOf(const RailPair &pair, bool ofBoth) const;
  std::string namesOf(bool areUsed) const;

  const RankPair pair;
  const TcpOffer first, second; // the lower rank's
  const Address own, peer;      // of the connection by which they have met
  RailPairs pairs;
  std::optional<RailCaller> caller; // of the lower rank
  std::optional<RailHost> host;     // of the higher one
  RailSecret secret;
  Working isUsed{};
  uint32_t numUsed = 1;
};

RailPairs onlyMet() {
  RailPairs pairs;
  pairs.add({RailPair::kUnknown, RailPair::kUnknown, 1});
  return pairs;
}

TcpAttempt::TcpAttempt(const RankPair &pair, const TcpOffer &mine, const TcpOffer &theirs,
                       const Address &own, const Address &peer)
    : pair(pair), first(pair.isFirst() ? mine : theirs), second(pair.isFirst() ? theirs : mine),
      own(own), peer(peer),
      pairs(pairRails(first, second, pair.isFirst() ? own : peer, pair.isFirst() ? peer : own)) {
  secret.key = pair.key;
  secret.first = std::min(pair.rank, pair.peer);
  secret.second = std::max(pair.rank, pair.peer);
  if (pair.isFirst() || (pairs.count == 1 && isMet(0)))
    return;
  if (auto listening = RailHost::listen(); listening.ok())
    host.emplace(std::move(*listening));
}

AttemptBytes TcpAttempt::address() const {
  TcpAddress address;
  address.pairs = pairs;
  if (host) {
    address.port = host->port();
    address.token = host->token();
  }
  return bytesOf<AttemptBytes>(address);
}

Status TcpAttempt::connect(const AttemptBytes &ofPeer) {
  const auto address = recordOf<TcpAddress>(ofPeer);
  if (pair.isFirst() && address.port != 0) {
    secret.token = address.token;
    callAll(address.port);
  } else if (host) {
    if (!fits(address.pairs, first, second))
      return {StatusCode::Mismatch, "the peer's pairs of interfaces make no sense"};
    pairs = address.pairs;
    secret.token = host->token();
  } else {
    pairs = onlyMet();
  }
  return {};
}

void TcpAttempt::callAll(uint16_t port) {
  caller.emplace(secret);
  for (uint32_t i = 0; i < pairs.count; ++i) {
    if (isMet(i))
      continue;
    const RailPair &rail = pairs.pairs[i];
    Address from = own, to = peer;
    if (rail.isAsMet == 0) {
      from.host = first.addresses[rail.ofFirst].host;
      to.host = second.addresses[rail.ofSecond].host;
    }
    to.port = port;
    caller->call(i, from, to);
  }
}

StatusOr<bool> TcpAttempt::tryOut() {
  if (caller)
    return caller->advance();
  Working expected{};
  for (uint32_t i = 0; i < pairs.count; ++i)
    expected[i] = !isMet(i);
  return !host || host->advance(secret, expected);
}

TcpAttempt::Told TcpAttempt::working() const {
  Told told;
  for (uint32_t i = 0; i < pairs.count; ++i)
    told.works[i] =
        isMet(i) || (caller && caller->sockets[i].valid()) || (host && host->sockets[i].valid());
  return told;
}

void TcpAttempt::settle(const AttemptBytes &ofPeer) {
  const Told here = working(), there = recordOf<Told>(ofPeer);
  numUsed = 0;
  for (uint32_t i = 0; i < pairs.count; ++i)
    numUsed += isUsed[i] = here.works[i] != 0 && there.works[i] != 0;
}

/// "eth0", or "eth0 to ens3" if it has another name there.
std::string TcpAttempt::nameOf(const RailPair &rail, bool ofBoth) const {
  const auto nameIn = [](const TcpOffer &offer, uint8_t index) {
    return index == RailPair::kUnknown ? std::string() : offer.addresses[index].name();
  };
  const std::string here = nameIn(first, rail.ofFirst), there = nameIn(second, rail.ofSecond);
  if (!ofBoth)
    return pair.isFirst() ? here : there;
  return here == there ? here : here + " to " + there;
}

/// Each once.
std::string TcpAttempt::namesOf(bool areUsed) const {
  std::string names;
  std::set<std::string> seen;
  for (uint32_t i = 0; i < pairs.count; ++i)
    if (const std::string name = nameOf(pairs.pairs[i], true);
        isUsed[i] == areUsed && !name.empty() && seen.insert(name).second)
      names += (names.empty() ? "" : ", ") + name;
  return names;
}

std::string TcpAttempt::text() const {
  const std::string used = namesOf(true), unused = namesOf(false);
  std::string text;
  if (numUsed > 1)
    text = std::to_string(numUsed) + " connections" + (used.empty() ? "" : " by " + used);
  else if (pairs.count > 1 || !isMet(0))
    text = used.empty() ? "as ranks have met" : "by " + used;
  if (numUsed < pairs.count)
    text += (text.empty() ? "" : "; ") + std::string("not all connections came about") +
            (unused.empty() ? "" : ", by " + unused);
  return text;
}

std::unique_ptr<Endpoint> TcpAttempt::finish(bootstrap::Descriptor met) {
  std::vector<Rail> rails;
  for (uint32_t i = 0; i < pairs.count; ++i)
    if (isUsed[i])
      rails.push_back(
          {isMet(i) ? std::move(met) : std::move(sockets()[i]), nameOf(pairs.pairs[i], false)});
  if (rails.empty())
    rails.push_back({std::move(met), ""});
  if (rails.size() == 1)
    rails.front().name.clear();
  return makeTcpEndpoint(std::move(rails), pair.regions, pair.silence);
}

class TcpTransport final : public TransportKind {
public:
  std::string_view title() const override { return "TCP"; }
  StatusOr<OfferBytes> offer() override {
    auto own = tcpOffer();
    if (!own.ok())
      return own.status();
    return bytesOf<OfferBytes>(*own);
  }
  StatusOr<std::unique_ptr<Attempt>> attempt(const RankPair &pair, const OfferBytes &mine,
                                             const OfferBytes &theirs) override {
    const auto ofPeer = recordOf<TcpOffer>(theirs);
    if (!isOffer(ofPeer))
      return Status(StatusCode::Mismatch, "the peer's addresses make no sense");
    const auto own = addressOf(pair.socket), peer = addressOfPeer(pair.socket);
    return std::unique_ptr<Attempt>(
        std::make_unique<TcpAttempt>(pair, recordOf<TcpOffer>(mine), ofPeer,
                                     own.ok() ? *own : Address(), peer.ok() ? *peer : Address()));
  }
};

} // namespace

std::unique_ptr<TransportKind> tcpTransport() { return std::make_unique<TcpTransport>(); }

} // namespace occl::net
