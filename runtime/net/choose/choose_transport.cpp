// Which transports a rank may use by its environment, and how all pairs choose one at once.
#include "runtime/net/choose/choose_transport.h"

#include "runtime/net/choose/agreement.h"
#include "runtime/net/transport/nccl_net/nccl_net_attempt.h"
#include "runtime/net/transport/rails/tcp_attempt.h"
#include "runtime/net/transport/verbs/verbs_attempt.h"
#include "runtime/sync/thread.h"

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <iterator>
#include <string_view>
#include <strings.h>
#include <utility>

namespace occl::net {
namespace {

constexpr std::string_view kNcclNet = "ncclnet";

struct Kind {
  std::string_view name;
  /// NAME_OR_PATH may follow it.
  bool isNamed;
  std::unique_ptr<TransportKind> (*make)(std::string argument);
};
constexpr Kind kKinds[] = {
    {kNcclNet, true, ncclNetTransport},
    {"verbs", false, [](std::string) { return verbsTransport(); }},
    {"tcp", false, [](std::string) { return tcpTransport(); }},
};
static_assert(std::size(kKinds) <= Offer::kMost);

struct Entry {
  const Kind *kind = nullptr; // null: there is none of that name
  std::string argument;
};

Entry entryOf(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  for (const Kind &kind : kKinds)
    if (kind.name == name && (kind.isNamed || colon == std::string_view::npos))
      return {&kind, std::string(colon == std::string_view::npos ? "" : text.substr(colon + 1))};
  return {};
}

/// The first of NCCL's list, of which NCCL takes the first that works.
std::string pluginOfEnvironment() {
  const char *text = std::getenv("NCCL_NET_PLUGIN");
  const std::string_view names = text ? text : "";
  const std::string name(names.substr(0, names.find(',')));
  return strcasecmp(name.c_str(), "none") == 0 ? "" : name;
}

bool isOne(const char *variable) {
  const char *text = std::getenv(variable);
  return text && std::string_view(text) == "1";
}

/// As the variables say by which users of NCCL choose.
AllowedTransports transportsOfNccl() {
  const char *wanted = std::getenv("NCCL_NET");
  const std::string plugin = pluginOfEnvironment();
  if (wanted && strcasecmp(wanted, "Socket") == 0)
    return {"tcp"};
  if (wanted && strcasecmp(wanted, "IB") == 0)
    return {"verbs"};
  const std::string byPlugin = std::string(kNcclNet) + (plugin.empty() ? "" : ":" + plugin);
  if (wanted && *wanted)
    return {byPlugin}; // it is a plugin's name
  // Without a choice a named plugin comes first, then RDMA, then TCP.
  AllowedTransports allowed;
  if (!plugin.empty())
    allowed.push_back(byPlugin);
  if (!isOne("NCCL_IB_DISABLE"))
    allowed.push_back("verbs");
  allowed.push_back("tcp");
  return allowed;
}

} // namespace

StatusOr<AllowedTransports> transportsOfEnvironment() {
  const char *text = std::getenv("OCCL_NET");
  if (!text)
    return transportsOfNccl();
  // Read a list with commas, in which each transport stands at most once.
  AllowedTransports allowed;
  std::vector<const Kind *> seen;
  for (std::string_view rest = text;;) {
    const size_t comma = rest.find(',');
    const std::string_view one = rest.substr(0, comma);
    const Entry entry = entryOf(one);
    if (!entry.kind || std::ranges::count(seen, entry.kind) != 0)
      return Status(StatusCode::InvalidArgument,
                    "environment variable OCCL_NET is '" + std::string(text) +
                        "', expected a list of 'ncclnet' or 'ncclnet:NAME_OR_PATH', 'verbs' and "
                        "'tcp', each at most once, with commas between them");
    seen.push_back(entry.kind);
    allowed.emplace_back(one);
    if (comma == std::string_view::npos)
      return allowed;
    rest = rest.substr(comma + 1);
  }
}

const char *ncclNetPluginOf(const std::string &allowed) {
  const Entry entry = entryOf(allowed);
  if (!entry.kind || entry.kind->name != kNcclNet)
    return nullptr;
  return allowed.c_str() + (allowed.size() - entry.argument.size());
}

namespace {

/// Once a peer is lost: the first failure of another kind, as the peer may have gone for that, or
/// else the loss.
Status failureWithLoss(const std::deque<Agreement> &agreements) {
  Status lost, other;
  for (const Agreement &agreement : agreements) {
    const Status failed = agreement.failure();
    Status &first = failed.code() == StatusCode::PeerFailed ? lost : other;
    if (first.ok())
      first = failed;
  }
  return lost.ok() || other.ok() ? lost : other;
}

} // namespace

StatusOr<std::vector<Connected>> connectEndpoints(uint32_t rank,
                                                  std::vector<ConnectRequest> requests,
                                                  std::chrono::milliseconds silence,
                                                  const AllowedTransports &allowed,
                                                  const Deadline &deadline) {
  using namespace std::chrono_literals;
  // Ask each transport once what it offers to all peers.
  std::vector<OwnTransport> own;
  if (!requests.empty())
    for (const std::string &text : allowed) {
      const Entry entry = entryOf(text);
      own.push_back({std::string(entry.kind->name), entry.kind->make(entry.argument)});
    }
  const Offer mine = offerOf(own);
  std::deque<Agreement> agreements;
  for (ConnectRequest &request : requests)
    agreements.emplace_back(RankPair{rank, request.peer, request.ownTurn, request.peerTurn,
                                     request.regions, silence, request.socket.get(), request.key},
                            std::move(request.socket), own, mine, deadline);
  // All go on side by side: a trial that fails takes as long for all as for one.
  for (bool areOver = false; !areOver;) {
    areOver = true;
    for (Agreement &agreement : agreements)
      areOver &= agreement.advance();
    // The others may wait for a rank that is gone, and learn of it by this one's end.
    if (Status failed = failureWithLoss(agreements); !failed.ok())
      return failed;
    if (!areOver)
      sleepFor(100us);
  }
  // The first pair that has failed decides the error.
  std::vector<Connected> connected;
  for (Agreement &agreement : agreements) {
    auto finished = agreement.finish();
    if (!finished.ok())
      return finished.status();
    connected.push_back({std::move(finished->endpoint), std::move(finished->how)});
  }
  return connected;
}

} // namespace occl::net
