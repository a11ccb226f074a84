#include "runtime/net/transport/rails/tcp_attempt.h"

#include "runtime/net/transport/rails/connecting.h"
#include "runtime/net/transport/rails/offer.h"
#include "runtime/net/transport/rails/pairs.h"
#include "runtime/net/transport/rails/path_failures.h"
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
  RailPairs pairs; // those of the lower rank count
  /// The lower rank's, of its pairs: they are not tried, as nothing has come by them lately.
  std::array<uint8_t, kMostRails> isLeftOut{};
  /// The higher rank's, of its pairs: where it listens at its address; 0: it does not.
  std::array<uint16_t, kMostRails> ports{};
  Hash token{}; // the higher rank's

  /// At which the higher rank, who has said this, is reached as this pair says.
  uint16_t portFor(const RailPair &rail) const {
    for (uint32_t i = 0; i < pairs.count; ++i)
      if (const RailPair &other = pairs.pairs[i];
          other.isAsMet == rail.isAsMet && (rail.isAsMet != 0 || other.ofSecond == rail.ofSecond))
        return ports[i];
    return 0;
  }
};

/// The lower rank is the first of a pair, says which addresses make rails and which of them are
/// tried, connects, and remembers what came of it. So the two cannot disagree.
class TcpAttempt final : public Attempt {
public:
  TcpAttempt(const RankPair &pair, const TcpOffer &mine, const TcpOffer &theirs, const Address &own,
             const Address &peer);

  AttemptBytes address() const override { return bytesOf<AttemptBytes>(said()); }
  Status connect(const AttemptBytes &ofPeer) override;
  StatusOr<bool> tryOut() override;
  bool worksAlready() const override { return true; }
  /// Who connects says so once each call is answered or has failed, or when it waits no longer.
  bool endsWithPeer() const override { return host.has_value(); }
  AttemptBytes tried() const override { return bytesOf<AttemptBytes>(working()); }
  void settle(const AttemptBytes &ofPeer) override;
  std::string text() const override;
  std::unique_ptr<Endpoint> finish(bootstrap::Descriptor met) override;

private:
  using OfRails = std::array<bool, kMostRails>;
  struct Told {
    std::array<uint8_t, kMostRails> works{};
  };

  bool isMet(uint32_t index) const { return index == 0 && pairs.pairs[0].isAsMet != 0; }
  Address ofFirst(const RailPair &rail) const;
  Address ofSecond(const RailPair &rail) const;
  Path pathOf(const RailPair &rail) const;
  void leaveOut();
  void listen();
  TcpAddress said() const;
  void remember() const;
  Told working() const;
  RailSockets &sockets() { return caller ? caller->sockets : host->sockets; }
  std::string nameOf(const RailPair &pair, bool ofBoth) const;
  std::string namesOf(const OfRails &which) const;

  const RankPair pair;
  const TcpOffer first, second; // the lower rank's
  const Address own, peer;      // of the connection by which they have met
  RailPairs pairs;
  OfRails isLeftOut{}, isTried{}, isUsed{};
  std::optional<RailCaller> caller; // of the lower rank
  std::optional<RailHost> host;     // of the higher one
  RailSecret secret;
};

TcpAttempt::TcpAttempt(const RankPair &pair, const TcpOffer &mine, const TcpOffer &theirs,
                       const Address &own, const Address &peer)
    : pair(pair), first(pair.isFirst() ? mine : theirs), second(pair.isFirst() ? theirs : mine),
      own(own), peer(peer),
      pairs(pairRails(first, second, pair.isFirst() ? own : peer, pair.isFirst() ? peer : own)) {
  secret.key = pair.key;
  secret.first = std::min(pair.rank, pair.peer);
  secret.second = std::max(pair.rank, pair.peer);
  if (pair.isFirst())
    leaveOut();
  else
    listen();
}

Address TcpAttempt::ofFirst(const RailPair &rail) const {
  Address address = pair.isFirst() ? own : peer;
  if (rail.isAsMet == 0)
    address.host = first.addresses[rail.ofFirst].host;
  return address;
}

Address TcpAttempt::ofSecond(const RailPair &rail) const {
  Address address = pair.isFirst() ? peer : own;
  if (rail.isAsMet == 0)
    address.host = second.addresses[rail.ofSecond].host;
  return address;
}

/// Of the lower rank.
Path TcpAttempt::pathOf(const RailPair &rail) const {
  return {ofFirst(rail).host, ofSecond(rail).host, peer.host};
}

/// Where nothing came lately. Nothing at all is left out if data had to go by what its rank has
/// excluded then.
void TcpAttempt::leaveOut() {
  bool isAnyLeft = false;
  for (uint32_t i = 0; i < pairs.count; ++i) {
    isLeftOut[i] = !isMet(i) && PathFailures::ofProcess().hasFailed(pathOf(pairs.pairs[i]));
    isAnyLeft |= !isLeftOut[i];
  }
  if (!isAnyLeft)
    isLeftOut = {};
}

void TcpAttempt::listen() {
  std::vector<Address> addresses;
  for (uint32_t i = 0; i < pairs.count; ++i)
    if (!isMet(i))
      addresses.push_back(ofSecond(pairs.pairs[i]));
  if (addresses.empty())
    return;
  if (auto listening = RailHost::listen(addresses); listening.ok())
    host.emplace(std::move(*listening));
}

TcpAddress TcpAttempt::said() const {
  TcpAddress address;
  address.pairs = pairs;
  std::ranges::copy(isLeftOut, address.isLeftOut.begin());
  if (!host)
    return address;
  address.token = host->token();
  for (uint32_t i = 0; i < pairs.count; ++i)
    address.ports[i] = host->portAt(ofSecond(pairs.pairs[i]));
  return address;
}

Status TcpAttempt::connect(const AttemptBytes &ofPeer) {
  const TcpAddress mine = said();
  const auto theirs = recordOf<TcpAddress>(ofPeer);
  const TcpAddress &ofLower = pair.isFirst() ? mine : theirs,
                   &ofHigher = pair.isFirst() ? theirs : mine;
  if (!fits(theirs.pairs, first, second))
    return {StatusCode::Mismatch, "the peer's pairs of interfaces make no sense"};
  pairs = ofLower.pairs;
  secret.token = ofHigher.token;
  if (pair.isFirst())
    caller.emplace(secret);
  for (uint32_t i = 0; i < pairs.count; ++i) {
    const RailPair &rail = pairs.pairs[i];
    const uint16_t port = ofHigher.portFor(rail);
    isLeftOut[i] = ofLower.isLeftOut[i] != 0;
    isTried[i] = !isMet(i) && !isLeftOut[i] && port != 0;
    if (!isTried[i] || !caller)
      continue;
    Address to = ofSecond(rail);
    to.port = port;
    caller->call(i, ofFirst(rail), to);
  }
  return {};
}

StatusOr<bool> TcpAttempt::tryOut() {
  return caller ? caller->advance() : !host || host->advance(secret, isTried);
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
  for (uint32_t i = 0; i < pairs.count; ++i)
    isUsed[i] = here.works[i] != 0 && there.works[i] != 0;
  if (caller)
    remember();
}

/// Of two connections of one pair of addresses one may get through: then this works.
void TcpAttempt::remember() const {
  PathFailures &failures = PathFailures::ofProcess();
  for (uint32_t i = 0; i < pairs.count; ++i)
    if (isTried[i] && caller->isUnanswered(i))
      failures.addFailure(pathOf(pairs.pairs[i]));
  for (uint32_t i = 0; i < pairs.count; ++i)
    if (isTried[i] && isUsed[i])
      failures.remove(pathOf(pairs.pairs[i]));
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
std::string TcpAttempt::namesOf(const OfRails &which) const {
  std::string names;
  std::set<std::string> seen;
  for (uint32_t i = 0; i < pairs.count; ++i)
    if (const std::string name = nameOf(pairs.pairs[i], true);
        which[i] && !name.empty() && seen.insert(name).second)
      names += (names.empty() ? "" : ", ") + name;
  return names;
}

std::string TcpAttempt::text() const {
  OfRails hasFailed{};
  for (uint32_t i = 0; i < pairs.count; ++i)
    hasFailed[i] = !isUsed[i] && !isLeftOut[i];
  const auto numUsed = std::ranges::count(isUsed, true);
  const std::string used = namesOf(isUsed), failed = namesOf(hasFailed),
                    leftOut = namesOf(isLeftOut);
  std::string text;
  if (numUsed > 1)
    text = std::to_string(numUsed) + " connections" + (used.empty() ? "" : " by " + used);
  else if (pairs.count > 1 || !isMet(0))
    text = used.empty() ? "as ranks have met" : "by " + used;
  if (std::ranges::count(hasFailed, true) != 0)
    text += (text.empty() ? "" : "; ") + std::string("not all connections came about") +
            (failed.empty() ? "" : ", by " + failed);
  if (std::ranges::count(isLeftOut, true) != 0)
    text += "; not tried, as nothing has come that way lately" +
            (leftOut.empty() ? "" : ": " + leftOut);
  return text;
}

std::unique_ptr<Endpoint> TcpAttempt::finish(bootstrap::Descriptor met) {
  std::vector<Rail> rails;
  for (uint32_t i = 0; i < pairs.count; ++i)
    if (isUsed[i])
      rails.push_back( // one of them is met at most: NOLINTNEXTLINE(bugprone-use-after-move)
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
