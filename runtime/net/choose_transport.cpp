#include "runtime/net/choose_transport.h"

#include "runtime/net/rendezvous/socket.h"
#include "runtime/net/transport/tcp.h"
#include "runtime/net/transport/verbs/verbs_endpoint.h"
#include "runtime/sync/thread.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <string_view>
#include <utility>

namespace occl::net {
namespace {

// --- What ranks tell each other, in this order. Fixed layouts: they are sent as they are.

using Text = std::array<char, 256>;

Text textOf(std::string_view from) {
  Text text{};
  from.copy(text.data(), text.size() - 1);
  return text;
}

std::string stringOf(const Text &text) { return {text.data(), strnlen(text.data(), text.size())}; }

struct Offer {
  static constexpr size_t kMostPorts = 32;

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

// --- One pair of ranks. All pairs take each step before the next one: a trial that fails takes as
// long for all as for one.

class Pair {
public:
  Pair(uint32_t rank, ConnectRequest request, const Deadline &deadline)
      : rank(rank), request(std::move(request)), deadline(deadline) {}

  void tellOffer(const Offer &offer) {
    mine = &offer;
    tell(offer);
  }
  void hearOffer();
  // Steps towards RDMA, each of which ends by telling and hearing how it went. Nothing happens in
  // them once one has failed on either side.
  void make(std::chrono::milliseconds silence);
  void connect();
  void tryOut(bool isAgain);
  /// Whether nothing of the trial is waited for.
  bool isTriedOut();
  void endTrial();
  void hearStep();

  StatusOr<Connected> finish(std::chrono::milliseconds silence);

private:
  template <class Record> void tell(const Record &record) {
    if (lost.ok())
      lost = sendRecord(request.socket, record, deadline);
  }
  template <class Record> bool hear(Record &record) {
    if (lost.ok())
      lost = receiveRecord(request.socket, record, deadline);
    return lost.ok();
  }
  void tellStep(const Status &status, const QueuePairAddress &queue = {});
  bool goesOn() const { return lost.ok() && whyNot.ok(); }
  std::string nameOf(bool isOwn) const {
    return "rank " + std::to_string(isOwn ? rank : request.peer);
  }

  const uint32_t rank;
  ConnectRequest request;
  const Deadline &deadline;
  const Offer *mine = nullptr;
  Offer theirs;
  Step theirStep;
  std::unique_ptr<VerbsEndpoint> verbs;
  Status ofStep; // the own one
  Status whyNot; // RDMA: equal on both sides
  Status lost;   // the socket
};

void Pair::hearOffer() {
  if (!hear(theirs))
    return;
  theirs.numPorts = std::min<uint32_t>(theirs.numPorts, Offer::kMostPorts);
  for (const auto &[offer, isOwn] :
       {std::pair(mine, true), std::pair(&std::as_const(theirs), false)})
    if (whyNot.ok() && offer->numPorts == 0)
      whyNot = {StatusCode::SystemError, nameOf(isOwn) + ": " + stringOf(offer->whyNone)};
}

void Pair::make(std::chrono::milliseconds silence) {
  if (!goesOn())
    return;
  const std::span ofMine = std::span(mine->ports).first(mine->numPorts),
                  ofTheirs = std::span(std::as_const(theirs).ports).first(theirs.numPorts);
  const bool isFirst = rank < request.peer;
  const PortPair chosen = isFirst
                              ? choosePorts(ofMine, request.ownTurn, ofTheirs, request.peerTurn)
                              : choosePorts(ofTheirs, request.peerTurn, ofMine, request.ownTurn);
  const int port = isFirst ? chosen.first : chosen.second;
  if (port < 0) {
    whyNot = {StatusCode::SystemError, "the ports of both ranks are of different networks"};
    return;
  }
  auto made =
      VerbsEndpoint::make(rdmaPorts().ports[static_cast<size_t>(port)], request.regions, silence);
  if (made.ok())
    verbs = std::move(*made);
  tellStep(made.status(), verbs ? verbs->address() : QueuePairAddress());
}

void Pair::connect() {
  if (goesOn())
    tellStep(verbs->connect(theirStep.queue));
}

void Pair::tryOut(bool isAgain) {
  if (goesOn() && (!isAgain || !isTriedOut()))
    verbs->sendTrial();
}

bool Pair::isTriedOut() {
  if (!goesOn() || !ofStep.ok())
    return true;
  const auto tried = verbs->isTriedOut();
  ofStep = tried.status();
  return !tried.ok() || *tried;
}

void Pair::endTrial() {
  if (!goesOn())
    return;
  const bool isOver = isTriedOut();
  tellStep(isOver ? ofStep
                  : Status(StatusCode::Timeout, "nothing has come over " + verbs->portText()));
}

void Pair::tellStep(const Status &status, const QueuePairAddress &queue) {
  ofStep = status;
  Step step;
  step.succeeded = status.ok();
  step.queue = queue;
  step.why = textOf(status.message());
  tell(step);
}

void Pair::hearStep() {
  if (!goesOn() || !hear(theirStep))
    return;
  if (!ofStep.ok())
    whyNot = {ofStep.code(), nameOf(true) + ": " + ofStep.message()};
  else if (!theirStep.succeeded)
    whyNot = {StatusCode::SystemError, nameOf(false) + ": " + stringOf(theirStep.why)};
}

StatusOr<Connected> Pair::finish(std::chrono::milliseconds silence) {
  if (!lost.ok())
    return Status(lost.code(), nameOf(true) + " cannot agree with " + nameOf(false) +
                                   " on a transport: " + lost.message());
  if (whyNot.ok()) {
    verbs->watch(std::move(request.socket));
    std::string how = "RDMA (" + verbs->portText() + ")";
    return Connected{std::move(verbs), std::move(how)};
  }
  verbs.reset();
  if (mine->tcp && theirs.tcp)
    return Connected{makeTcpEndpoint(std::move(request.socket), request.regions, silence),
                     "TCP (" + whyNot.message() + ")"};
  return Status(StatusCode::SystemError,
                nameOf(true) + " and " + nameOf(false) +
                    " have no transport that both may use: RDMA: " + whyNot.message() +
                    "; TCP: OCCL_NET of " + nameOf(!mine->tcp) + " does not allow it");
}

/// Networks that lose everything must not keep the caller waiting; those that lose something get
/// more than one chance.
void tryOutAll(std::deque<Pair> &pairs, const Deadline &deadline) {
  using namespace std::chrono_literals;
  const Deadline trial(std::min<std::chrono::milliseconds>(
      std::chrono::ceil<std::chrono::milliseconds>(deadline.remaining()) / 2, 5s)),
      second(500ms), third(1500ms);
  int numSent = 1;
  for (Pair &pair : pairs)
    pair.tryOut(/*isAgain=*/false);
  const auto areOver = [&] {
    return std::ranges::all_of(pairs, [](Pair &pair) { return pair.isTriedOut(); });
  };
  while (!areOver() && !trial.passed()) {
    if ((numSent == 1 && second.passed()) || (numSent == 2 && third.passed())) {
      ++numSent;
      for (Pair &pair : pairs)
        pair.tryOut(/*isAgain=*/true);
    }
    sleepFor(100us);
  }
  for (Pair &pair : pairs)
    pair.endTrial();
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

StatusOr<std::vector<Connected>> connectEndpoints(uint32_t rank,
                                                  std::vector<ConnectRequest> requests,
                                                  std::chrono::milliseconds silence,
                                                  const AllowedTransports &allowed,
                                                  const Deadline &deadline) {
  std::deque<Pair> pairs;
  for (ConnectRequest &request : requests)
    pairs.emplace_back(rank, std::move(request), deadline);
  const auto all = [&](auto step) { std::ranges::for_each(pairs, step); };
  const auto hearSteps = [&] { all([](Pair &pair) { pair.hearStep(); }); };
  // Which ports there are.
  const Offer offer = offerOf(allowed);
  all([&](Pair &pair) { pair.tellOffer(offer); });
  all([](Pair &pair) { pair.hearOffer(); });
  // Queue pairs are made, connected and tried out, on both sides.
  all([&](Pair &pair) { pair.make(silence); });
  hearSteps();
  all([](Pair &pair) { pair.connect(); });
  hearSteps();
  tryOutAll(pairs, deadline);
  hearSteps();
  std::vector<Connected> connected;
  for (Pair &pair : pairs) {
    auto finished = pair.finish(silence);
    if (!finished.ok())
      return finished.status();
    connected.push_back(std::move(*finished));
  }
  return connected;
}

} // namespace occl::net
