// How RDMA is offered to peers, and tried with one of them.
#include "runtime/net/transport/verbs/verbs_attempt.h"

#include "runtime/net/transport/verbs/verbs_endpoint.h"
#include "runtime/sync/deadline.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>

namespace occl::net {
namespace {

using namespace std::chrono_literals;

/// Fixed layout: it is sent as it is.
struct VerbsOffer {
  static constexpr size_t kMostPorts = 32;

  uint32_t numPorts = 0, unused = 0;
  std::array<PortAddress, kMostPorts> ports;

  std::span<const PortAddress> used() const {
    return std::span(ports).first(std::min<size_t>(numPorts, kMostPorts));
  }
};

class VerbsAttempt final : public Attempt {
public:
  explicit VerbsAttempt(std::unique_ptr<VerbsEndpoint> made) : endpoint(std::move(made)) {}

  AttemptBytes address() const override { return bytesOf<AttemptBytes>(endpoint->address()); }
  Status connect(const AttemptBytes &ofPeer) override {
    return endpoint->connect(recordOf<QueuePairAddress>(ofPeer));
  }
  StatusOr<bool> tryOut() override;
  std::string text() const override { return endpoint->portText(); }
  std::unique_ptr<Endpoint> finish(bootstrap::Descriptor socket) override {
    endpoint->watch(std::move(socket));
    return std::move(endpoint);
  }

private:
  std::unique_ptr<VerbsEndpoint> endpoint;
  int numSent = 0;
  std::optional<Deadline> second, third; // trials
};

/// Networks that lose something get more than one chance.
StatusOr<bool> VerbsAttempt::tryOut() {
  if (numSent == 0) {
    second.emplace(500ms);
    third.emplace(1500ms);
  }
  if (numSent == 0 || (numSent == 1 && second->passed()) || (numSent == 2 && third->passed())) {
    ++numSent;
    endpoint->sendTrial();
  }
  return endpoint->isTriedOut();
}

class VerbsTransport final : public TransportKind {
public:
  std::string_view title() const override { return "RDMA"; }
  StatusOr<OfferBytes> offer() override;
  StatusOr<std::unique_ptr<Attempt>> attempt(const RankPair &pair, const OfferBytes &mine,
                                             const OfferBytes &theirs) override;
};

StatusOr<OfferBytes> VerbsTransport::offer() {
  const RdmaPorts &found = rdmaPorts();
  if (found.ports.empty())
    return Status(StatusCode::SystemError, found.whyNone);
  // An attempt names ports by their place in this list.
  VerbsOffer offer;
  offer.numPorts = static_cast<uint32_t>(std::min(found.ports.size(), VerbsOffer::kMostPorts));
  for (uint32_t i = 0; i < offer.numPorts; ++i)
    offer.ports[i] = found.ports[i].address;
  return bytesOf<OfferBytes>(offer);
}

StatusOr<std::unique_ptr<Attempt>>
VerbsTransport::attempt(const RankPair &pair, const OfferBytes &mine, const OfferBytes &theirs) {
  const auto own = recordOf<VerbsOffer>(mine), ofPeer = recordOf<VerbsOffer>(theirs);
  // Both ranks compute the same pair of ports, the lower rank's first.
  const PortPair chosen = pair.isFirst()
                              ? choosePorts(own.used(), pair.ownTurn, ofPeer.used(), pair.peerTurn)
                              : choosePorts(ofPeer.used(), pair.peerTurn, own.used(), pair.ownTurn);
  const int port = pair.isFirst() ? chosen.first : chosen.second;
  if (port < 0)
    return Status(StatusCode::SystemError, "the ports of both ranks are of different networks");
  auto made =
      VerbsEndpoint::make(rdmaPorts().ports[static_cast<size_t>(port)], pair.regions, pair.silence);
  if (!made.ok())
    return made.status();
  return std::unique_ptr<Attempt>(std::make_unique<VerbsAttempt>(std::move(*made)));
}

} // namespace

std::unique_ptr<TransportKind> verbsTransport() { return std::make_unique<VerbsTransport>(); }

} // namespace occl::net
