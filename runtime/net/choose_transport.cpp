#include "runtime/net/choose_transport.h"

#include "runtime/net/rendezvous/socket.h"
#include "runtime/net/transport/tcp.h"
#include "runtime/net/transport/verbs/verbs_endpoint.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

namespace occl::net {
namespace {

using bootstrap::Descriptor;

// --- What ranks tell each other, in this order. Fixed layouts: they are sent as they are.

using Text = std::array<char, 256>;

Text textOf(std::string_view from) {
  Text text{};
  from.copy(text.data(), text.size() - 1);
  return text;
}

std::string stringOf(const Text &text) { return {text.data(), strnlen(text.data(), text.size())}; }

struct Offer {
  static constexpr size_t kMostPorts = 16;

  uint32_t verbs = 0, tcp = 0; // whether they may be used
  uint32_t numPorts = 0, unused = 0;
  std::array<PortAddress, kMostPorts> ports;
  Text whyNone{};
};

/// Of one step towards RDMA, with what the next one needs.
struct Step {
  uint32_t succeeded = 0, unused = 0;
  QueuePairAddress queue;
  Text why{}; // not
};

/// What the other says where this says `mine`.
template <class Record>
StatusOr<Record> exchange(const Descriptor &socket, const Record &mine, const Deadline &deadline) {
  Record theirs;
  if (Status sent = sendRecord(socket, mine, deadline); !sent.ok())
    return sent;
  if (Status received = receiveRecord(socket, theirs, deadline); !received.ok())
    return received;
  return theirs;
}

Offer offerOf(const AllowedTransports &allowed) {
  Offer offer;
  offer.verbs = allowed.verbs;
  offer.tcp = allowed.tcp;
  if (!allowed.verbs) {
    offer.whyNone = textOf("OCCL_NET does not allow it");
    return offer;
  }
  const RdmaPorts &found = rdmaPorts();
  offer.whyNone = textOf(found.whyNone);
  offer.numPorts = static_cast<uint32_t>(std::min(found.ports.size(), Offer::kMostPorts));
  for (uint32_t i = 0; i < offer.numPorts; ++i)
    offer.ports[i] = found.ports[i].address;
  return offer;
}

// --- One pair of ranks, step by step.

class Connection {
public:
  Connection(Descriptor socket, const ConnectRequest &request, const Deadline &deadline)
      : request(request), deadline(deadline), socket(std::move(socket)) {}

  StatusOr<Connected> run();

private:
  StatusOr<std::unique_ptr<VerbsEndpoint>> connectVerbs();
  Status agree(const Status &mine, const QueuePairAddress &queue = {});
  Status overSocket(Status failed) {
    socketFailed = true;
    return failed;
  }
  std::string nameOf(bool isOwn) const {
    return "rank " + std::to_string(isOwn ? request.rank : request.peer);
  }

  const ConnectRequest &request;
  const Deadline &deadline;
  Descriptor socket;
  bool socketFailed = false;
  Offer mine, theirs;
  Step theirStep;
};

StatusOr<Connected> Connection::run() {
  mine = offerOf(request.allowed);
  auto offered = exchange(socket, mine, deadline);
  if (!offered.ok())
    return offered.status();
  theirs = *offered;
  theirs.numPorts = std::min<uint32_t>(theirs.numPorts, Offer::kMostPorts);
  auto verbs = connectVerbs();
  if (verbs.ok()) {
    (*verbs)->watch(std::move(socket));
    std::string how = "RDMA (" + (*verbs)->portText() + ")";
    return Connected{std::move(*verbs), std::move(how)};
  }
  if (socketFailed)
    return verbs.status();
  if (mine.tcp && theirs.tcp)
    return Connected{makeTcpEndpoint(std::move(socket), request.regions, request.silence),
                     "TCP (" + verbs.status().message() + ")"};
  return Status(StatusCode::SystemError,
                nameOf(true) + " and " + nameOf(false) +
                    " have no transport that both may use: " + "RDMA: " + verbs.status().message() +
                    "; TCP: OCCL_NET of " + nameOf(!mine.tcp) + " does not allow it");
}

/// Whether a step has succeeded on both sides: both get the same answer.
Status Connection::agree(const Status &ofMine, const QueuePairAddress &queue) {
  Step step;
  step.succeeded = ofMine.ok();
  step.queue = queue;
  step.why = textOf(ofMine.message());
  auto told = exchange(socket, step, deadline);
  if (!told.ok())
    return overSocket(told.status());
  theirStep = *told;
  if (!ofMine.ok())
    return {ofMine.code(), nameOf(true) + ": " + ofMine.message()};
  if (!theirStep.succeeded)
    return {StatusCode::SystemError, nameOf(false) + ": " + stringOf(theirStep.why)};
  return {};
}

/// The status that says why not is of both sides, unless the socket has failed.
StatusOr<std::unique_ptr<VerbsEndpoint>> Connection::connectVerbs() {
  for (const auto &[offer, isOwn] : {std::pair(&mine, true), std::pair(&theirs, false)})
    if (offer->numPorts == 0)
      return Status(StatusCode::SystemError, nameOf(isOwn) + ": " + stringOf(offer->whyNone));
  const PortPair ports = choosePorts(std::span(mine.ports).first(mine.numPorts), request.rank,
                                     std::span(theirs.ports).first(theirs.numPorts), request.peer);
  if (ports.mine < 0)
    return Status(StatusCode::SystemError, "the ports of both ranks are of different networks");
  // Made on both sides.
  auto made = VerbsEndpoint::make(rdmaPorts().ports[static_cast<size_t>(ports.mine)],
                                  request.regions, request.silence);
  if (Status agreed = agree(made.status(), made.ok() ? (*made)->address() : QueuePairAddress());
      !agreed.ok())
    return agreed;
  // Connected on both sides.
  if (Status agreed = agree((*made)->connect(theirStep.queue)); !agreed.ok())
    return agreed;
  // Something gets through both ways. Networks that lose it would keep the caller waiting.
  constexpr std::chrono::seconds kTrial{5};
  const Deadline trial(std::min<std::chrono::milliseconds>(
      std::chrono::ceil<std::chrono::milliseconds>(deadline.remaining()), kTrial));
  if (Status agreed = agree((*made)->tryOut(trial)); !agreed.ok())
    return agreed;
  return made;
}

} // namespace

StatusOr<AllowedTransports> transportsOfEnvironment() {
  const char *text = std::getenv("OCCL_NET");
  const std::string_view wanted = text ? text : "verbs,tcp";
  if (wanted == "verbs,tcp")
    return AllowedTransports{true, true};
  if (wanted == "verbs")
    return AllowedTransports{true, false};
  if (wanted == "tcp")
    return AllowedTransports{false, true};
  return Status(StatusCode::InvalidArgument, "environment variable OCCL_NET is '" +
                                                 std::string(wanted) +
                                                 "', expected 'verbs,tcp', 'verbs' or 'tcp'");
}

StatusOr<Connected> connectEndpoint(Descriptor socket, const ConnectRequest &request,
                                    const Deadline &deadline) {
  return Connection(std::move(socket), request, deadline).run();
}

} // namespace occl::net
