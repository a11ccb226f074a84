// How a network plugin is offered to peers, and tried with one of them.
#include "runtime/net/transport/nccl_net/nccl_net_attempt.h"

#include "runtime/net/transport/nccl_net/nccl_net_endpoint.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace occl::net {
namespace {

/// Fixed layout: it is sent as it is.
struct NcclNetOffer {
  std::array<char, 64> plugin{}; // its name, as it says itself
};

class NcclNetAttempt final : public Attempt {
public:
  NcclNetAttempt(std::shared_ptr<NcclNetContext> context, const NcclNetDevice &device,
                 std::unique_ptr<NcclNetEndpoint> endpoint)
      : context(std::move(context)), device(device), endpoint(std::move(endpoint)) {}

  AttemptBytes address() const override { return bytesOf<AttemptBytes>(endpoint->address()); }
  Status connect(const AttemptBytes &ofPeer) override {
    return endpoint->connect(recordOf<NcclNetAddress>(ofPeer));
  }
  StatusOr<bool> tryOut() override { return endpoint->tryOut(); }
  void driveOn() override { endpoint->driveOn(); }
  std::string text() const override {
    return context->plugin.name + " version " + std::to_string(context->plugin.version) +
           ", device " + device.properties.name;
  }
  std::unique_ptr<Endpoint> finish(bootstrap::Descriptor socket) override {
    endpoint->watch(std::move(socket));
    return std::move(endpoint);
  }

private:
  const std::shared_ptr<NcclNetContext> context;
  const NcclNetDevice &device; // of the context
  std::unique_ptr<NcclNetEndpoint> endpoint;
};

class NcclNetTransport final : public TransportKind {
public:
  explicit NcclNetTransport(std::string plugin) : plugin(std::move(plugin)) {}

  std::string_view title() const override { return "NCCL's network plugin"; }
  StatusOr<OfferBytes> offer() override;
  StatusOr<std::unique_ptr<Attempt>> attempt(const RankPair &pair, const OfferBytes &mine,
                                             const OfferBytes &theirs) override;

private:
  const std::string plugin;
  std::shared_ptr<NcclNetContext> context;
};

StatusOr<OfferBytes> NcclNetTransport::offer() {
  auto opened = NcclNetContext::open(plugin);
  if (!opened.ok())
    return opened.status();
  context = std::move(*opened);
  NcclNetOffer offer;
  context->plugin.name.copy(offer.plugin.data(), offer.plugin.size() - 1);
  return bytesOf<OfferBytes>(offer);
}

StatusOr<std::unique_ptr<Attempt>>
NcclNetTransport::attempt(const RankPair &pair, const OfferBytes &mine, const OfferBytes &theirs) {
  // Two plugins do not speak to each other, although both have NCCL's interface.
  const auto name = [](const NcclNetOffer &offer) {
    return std::string(offer.plugin.data(), strnlen(offer.plugin.data(), offer.plugin.size()));
  };
  const std::string ours = name(recordOf<NcclNetOffer>(mine)),
                    ofPeer = name(recordOf<NcclNetOffer>(theirs));
  if (ours != ofPeer)
    return Status(StatusCode::SystemError, "its plugin is " + ours + ", that of rank " +
                                               std::to_string(pair.peer) + " " + ofPeer);
  // Ranks of one machine take its devices in turn.
  const NcclNetDevice &device = context->devices[pair.ownTurn % context->devices.size()];
  auto endpoint = NcclNetEndpoint::make(context, device, pair.regions, pair.silence);
  if (!endpoint.ok())
    return endpoint.status();
  return std::unique_ptr<Attempt>(
      std::make_unique<NcclNetAttempt>(context, device, std::move(*endpoint)));
}

} // namespace

std::unique_ptr<TransportKind> ncclNetTransport(std::string plugin) {
  return std::make_unique<NcclNetTransport>(std::move(plugin));
}

} // namespace occl::net
