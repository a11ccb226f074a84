// Forms groups of ranks on several machines, and divides them, phase by phase.
#include "runtime/net/machine_group.h"

#include "runtime/base/environment_number.h"
#include "runtime/base/process_identity.h"
#include "runtime/control/bootstrap/name.h"
#include "runtime/control/records/segment.h"
#include "runtime/control/shm/mapping.h"
#include "runtime/net/choose/choose_transport.h"
#include "runtime/net/even_islands.h"
#include "runtime/net/network.h"
#include "runtime/net/rendezvous/host_id.h"
#include "runtime/net/rendezvous/mesh.h"
#include "runtime/net/rendezvous/rendezvous.h"
#include "runtime/sync/mutex.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

namespace occl::net {
namespace {

using bootstrap::Group;
using bootstrap::Mapping;
using bootstrap::SharedBell;

Status invalid(std::string message) { return {StatusCode::InvalidArgument, std::move(message)}; }

/// What is kept of how a group was formed, to divide it.
struct Origin {
  Hash key{};                     // of its connections
  Hash host{};                    // of this rank: see Card
  std::vector<Address> addresses; // by rank, with any port
  std::chrono::milliseconds silence{};
  bool isOnDevice = false;
};

class MachineGroup final : public Group {
public:
  /// `island`: the ranks of this one, ascending; `local` has them in that order.
  MachineGroup(uint32_t rank, std::unique_ptr<Group> local, const std::vector<uint32_t> &island,
               uint32_t numEvenIslands, Origin origin)
      : origin(std::move(origin)), numEvenIslands(numEvenIslands), islandGroup(std::move(local)),
        island(island) {
    ownRank = rank;
    processes = true;
  }
  ~MachineGroup() override {
    if (links)
      links->stop(); // before the mirrors go
  }

  /// Ranks in ascending order; `mirrorOf` has those of other islands.
  Status map(uint32_t numRanks, std::vector<Mapping> mirrorsByRank, std::vector<Remote> remotes);

  Status barrier(const Deadline &deadline) override {
    Status met = islandGroup->barrier(deadline);
    return met.ok() ? links->barrier(deadline) : met;
  }
  bool isAlive(uint32_t rank) const override {
    return links->isRemote(rank) ? links->isUp(rank) : islandGroup->isAlive(localRank(rank));
  }
  bool isLocal(uint32_t rank) const override { return !links->isRemote(rank); }
  Network *network() const override { return links.get(); }
  std::span<std::byte> ownSegment() const { return islandGroup->segment(localRank(ownRank)); }

  const Origin origin;
  const uint32_t numEvenIslands;

private:
  uint32_t localRank(uint32_t rank) const {
    return static_cast<uint32_t>(std::ranges::lower_bound(island, rank) - island.begin());
  }

  const std::unique_ptr<Group> islandGroup;
  const std::vector<uint32_t> island;
  std::vector<Mapping> mirrors; // by rank; those of this island are empty
  std::unique_ptr<Network> links;
};

Status MachineGroup::map(uint32_t numRanks, std::vector<Mapping> mirrorsByRank,
                         std::vector<Remote> remotes) {
  auto bell = SharedBell::makePrivate();
  if (!bell.ok())
    return bell.status();
  mirrors = std::move(mirrorsByRank);
  // Ranks of other islands have mirrors, and one bell, on which the sending thread sleeps.
  for (uint32_t r = 0; r < numRanks; ++r) {
    const bool isOfIsland = std::ranges::binary_search(island, r);
    mapped.push_back(isOfIsland ? islandGroup->segment(localRank(r)) : mirrors[r].get());
    bells.push_back(isOfIsland ? islandGroup->sharedBell(localRank(r)) : *bell);
    members.push_back(isOfIsland ? islandGroup->process(localRank(r)) : ProcessIdentity());
  }
  links = std::make_unique<Network>(std::move(remotes), numRanks, bells[ownRank]->bell());
  // The threads begin last, since they use the mirrors.
  return links->start(*bell);
}

/// How often ranks of this process have met others, by name, number of ranks and rank.
struct PastMeetings {
  Mutex mutex; // guards all below
  std::unordered_map<std::string, uint16_t> numbers;
};

PastMeetings &pastMeetings() {
  static constinit PerProcess<PastMeetings> instance;
  return instance.get();
}

std::string keyOf(const MachineGroupOptions &options) {
  return std::to_string(options.rank) + "/" + std::to_string(options.numRanks) + "/" + options.name;
}

Run runOf(const MachineGroupOptions &options) {
  if (!options.restarts)
    return {};
  std::lock_guard lock(pastMeetings().mutex);
  // Both end at the largest number that fits.
  constexpr uint32_t kMost = std::numeric_limits<uint16_t>::max();
  return {static_cast<uint16_t>(std::min(*options.restarts, kMost - 1) + 1),
          pastMeetings().numbers[keyOf(options)]};
}

/// A rank that is left over from an earlier run is told by this.
void countMeeting(const MachineGroupOptions &options) {
  if (!options.restarts)
    return;
  std::lock_guard lock(pastMeetings().mutex);
  uint16_t &number = pastMeetings().numbers[keyOf(options)];
  number = std::max<uint16_t>(number, number + 1);
}

/// One rank that joins, phase by phase.
class Joiner {
public:
  explicit Joiner(const MachineGroupOptions &options)
      : options(options), deadline(options.timeout), silence(options.silence) {}

  StatusOr<std::unique_ptr<Group>> run() {
    if (Status read = readName(); !read.ok())
      return read;
    if (Status read = readLinkTimeout(); !read.ok())
      return read;
    const std::string host = hostId();
    return form(authenticate({}, std::as_bytes(std::span(host))), {});
  }

  /// Of ranks that know where they meet.
  StatusOr<std::unique_ptr<Group>> divide(Meeting where, const Hash &host, Descriptor listener) {
    meeting = std::move(where);
    mayBeLocal = true;
    return form(host, std::move(listener));
  }

private:
  StatusOr<std::unique_ptr<Group>> form(const Hash &host, Descriptor listener);
  Status readName();
  Status readLinkTimeout();
  StatusOr<std::unique_ptr<Group>> formIsland() const;
  Status whyGone() const;
  StatusOr<std::vector<Mapping>> makeMirrors(std::span<std::byte> own);
  Status makeEndpoints(std::vector<ConnectRequest> requests);
  uint32_t turnOf(uint32_t rank) const;
  Origin origin(const Hash &host) const;
  std::vector<Hash> hosts() const;

  const MachineGroupOptions &options;
  const Deadline deadline;
  std::chrono::milliseconds silence;
  AllowedTransports allowed;
  Meeting meeting;
  bool mayBeLocal = false; // then ranks of one island are a group of one machine
  std::optional<Met> met;
  std::vector<uint32_t> island, others; // ranks of this island, with this one; and the rest
  std::vector<Descriptor> sockets;      // by rank
  std::vector<Remote> remotes;
};

StatusOr<std::unique_ptr<Group>> Joiner::form(const Hash &host, Descriptor listener) {
  auto transports = transportsOfEnvironment();
  if (!transports.ok())
    return transports.status();
  allowed = *transports;
  // The card says which sizes must be equal on all ranks, and on which host this one lives.
  Card card;
  card.host = host;
  card.segmentBytes = options.segmentBytes;
  card.heapBytes = options.heapBytes;
  card.orderPolicy = options.orderPolicy;
  card.layoutVersion = transport::SegmentHeader::kVersion;
  // All ranks meet at rank 0 and get the cards of all.
  auto joined = meet(meeting, card, deadline, std::move(listener));
  if (!joined.ok())
    return joined.status();
  met.emplace(std::move(*joined));
  countMeeting(options);
  // Ranks of equal host ids form an island, which shares memory.
  for (uint32_t r = 0; r < options.numRanks; ++r)
    (met->cards[r].host == card.host ? island : others).push_back(r);
  auto local = formIsland();
  // A divided group of one island needs no connections.
  if (!local.ok() || (mayBeLocal && others.empty()))
    return local;
  auto group = std::make_unique<MachineGroup>(options.rank, std::move(*local), island,
                                              evenIslands(hosts()), origin(host));
  // Connect to all other ranks, then agree on a transport with each and map its mirror.
  auto connected = connectMesh(meeting, *met, others, deadline);
  if (!connected.ok())
    return connected.status();
  sockets = std::move(*connected);
  auto mirrors = makeMirrors(group->ownSegment());
  if (!mirrors.ok())
    return mirrors.status();
  if (Status mapped = group->map(options.numRanks, std::move(*mirrors), std::move(remotes));
      !mapped.ok())
    return mapped;
  return std::unique_ptr<Group>(std::move(group));
}

Origin Joiner::origin(const Hash &host) const {
  Origin kept = {dataKey(meeting, *met), host, {}, silence, options.isOnDevice};
  for (const Card &card : met->cards)
    kept.addresses.push_back(card.listener);
  return kept;
}

std::vector<Hash> Joiner::hosts() const {
  std::vector<Hash> ofRanks;
  for (const Card &card : met->cards)
    ofRanks.push_back(card.host);
  return ofRanks;
}

Status Joiner::readName() {
  if (Status status = bootstrap::checkGroup(options.numRanks, options.rank); !status.ok())
    return status;
  // A secret behind the address counts before that of the environment.
  const size_t slash = options.name.find('/');
  meeting.rootName = options.name.substr(0, slash);
  // Rank 0 needs no more than a port, and may be started before its own name is known.
  auto root =
      options.rank == 0 ? resolvePort(meeting.rootName) : resolve(meeting.rootName, deadline);
  if (!root.ok())
    return root.status();
  const char *ofEnvironment = std::getenv("OCCL_SECRET");
  meeting.secret = slash != std::string::npos ? options.name.substr(slash + 1)
                   : ofEnvironment            ? ofEnvironment
                                              : "";
  constexpr size_t kShortest = 16;
  // The responder of a handshake has nothing else to tell ranks from strangers.
  if (meeting.secret.size() < kShortest)
    return invalid("ranks of several machines need a secret of at least " +
                   std::to_string(kShortest) +
                   " characters that all know: in the environment as OCCL_SECRET, or behind the "
                   "address, as in HOST:PORT/SECRET");
  meeting.rank = options.rank;
  meeting.numRanks = options.numRanks;
  meeting.root = *root;
  meeting.job = options.job;
  meeting.run = runOf(options);
  return {};
}

Status Joiner::readLinkTimeout() {
  const char *text = std::getenv("OCCL_LINK_TIMEOUT_MS");
  if (!text)
    return {};
  // Below is the time of some retransmissions; above the kernel ends the connection itself.
  constexpr uint32_t kLeast = 200, kMost = 120000;
  const auto value = numberFrom(text, kLeast, kMost);
  if (!value)
    return invalid(std::string("environment variable OCCL_LINK_TIMEOUT_MS is '") + text +
                   "', expected " + std::to_string(kLeast) + " to " + std::to_string(kMost));
  silence = std::chrono::milliseconds(*value);
  return {};
}

StatusOr<std::unique_ptr<Group>> Joiner::formIsland() const {
  // Ranks of the island have numbers of their own within it.
  auto local = static_cast<const bootstrap::ProcessGroupOptions &>(options);
  local.numRanks = static_cast<uint32_t>(island.size());
  local.rank = static_cast<uint32_t>(std::ranges::find(island, options.rank) - island.begin());
  // The nonce is drawn for this communicator, so no other group has this name.
  uint64_t nonce = 0;
  std::memcpy(&nonce, met->nonce.data(), sizeof nonce);
  char name[40];
  std::snprintf(name, sizeof name, "island-%016llx-%u", static_cast<unsigned long long>(nonce),
                island.front());
  local.name = name;
  local.timeout = std::chrono::ceil<std::chrono::milliseconds>(deadline.remaining());
  local.whyGone = [this] { return whyGone(); };
  auto group = bootstrap::formProcessGroup(local);
  if (group.ok())
    return group;
  if (Status gone = whyGone(); group.status().code() == StatusCode::PeerFailed && !gone.ok())
    return gone;
  // Equal host ids do not promise shared memory: the error says how to tell hosts apart.
  return Status(group.status().code(),
                "ranks that seem to be on one host (those from rank " +
                    std::to_string(island.front()) + " on, " + std::to_string(island.size()) +
                    " of them; ranks in this message are numbered within these) cannot share "
                    "memory; if they are not, set OCCL_HOSTID differently: " +
                    group.status().message());
}

/// Of all ranks, also those of other islands: whoever learns of one that is gone gives up.
Status Joiner::whyGone() const {
  for (uint32_t r = 0; r < options.numRanks; ++r)
    if (r != options.rank && (met->hasEnded(r) || (meeting.isGone && meeting.isGone(r))))
      return goneRank(r);
  return {};
}

/// Among the ranks of its machine.
uint32_t Joiner::turnOf(uint32_t rank) const {
  return static_cast<uint32_t>(
      std::count_if(met->cards.begin(), met->cards.begin() + rank,
                    [&](const Card &card) { return card.host == met->cards[rank].host; }));
}

/// `own`: this rank's segment, which has the same layout.
StatusOr<std::vector<Mapping>> Joiner::makeMirrors(std::span<std::byte> own) {
  std::vector<Mapping> mirrors(options.numRanks);
  std::vector<ConnectRequest> requests;
  for (uint32_t peer : others) {
    // A mirror is as large as a segment, but its pages are taken only as they are written to.
    auto memory = Mapping::anonymous(own.size());
    if (!memory.ok())
      return memory.status();
    auto mirror =
        transport::Segment::format(memory->get(), peer, options.numRanks, options.heapBytes);
    if (!mirror.ok())
      return mirror.status();
    mirror->header().orderPolicy = options.orderPolicy; // as the cards say
    remotes.push_back({peer, nullptr, *mirror, peerOf(sockets[peer])});
    requests.push_back({peer, turnOf(options.rank), turnOf(peer), std::move(sockets[peer]),
                        regionsFor(*mirror, own.data(), peer, options.isOnDevice),
                        dataKey(meeting, *met)});
    mirrors[peer] = std::move(*memory);
  }
  // All pairs agree on their transports side by side, as each may take seconds.
  if (Status connected = makeEndpoints(std::move(requests)); !connected.ok())
    return connected;
  return mirrors;
}

/// Of all remotes.
Status Joiner::makeEndpoints(std::vector<ConnectRequest> requests) {
  auto connected = connectEndpoints(options.rank, std::move(requests), silence, allowed, deadline);
  if (!connected.ok())
    return connected.status();
  // OCCL_DEBUG=info tells which transport each pair has.
  const char *debug = std::getenv("OCCL_DEBUG");
  const bool explains = debug && std::string_view(debug) == "info";
  for (size_t i = 0; i < remotes.size(); ++i) {
    remotes[i].endpoint = std::move((*connected)[i].endpoint);
    if (explains)
      std::fprintf(stderr, "occl: rank %u reaches rank %u by %s\n", options.rank, remotes[i].rank,
                   (*connected)[i].how.c_str());
  }
  return {};
}

/// Known to all ranks of the parent, and of use for one meeting.
std::string secretOf(const Hash &key, const Division &division) {
  const std::string what =
      division.name + ", led by rank " + std::to_string(division.members.front().parentRank);
  return hexadecimal(authenticate(key, std::as_bytes(std::span(what))));
}

} // namespace

bool isAddress(std::string_view name) { return name.find(':') != std::string_view::npos; }

StatusOr<std::unique_ptr<Group>> formMachineGroup(const MachineGroupOptions &options) {
  return Joiner(options).run();
}

uint32_t numEvenIslands(const Group &group) {
  return group.network() ? static_cast<const MachineGroup &>(group).numEvenIslands : 1;
}

StatusOr<DivisionListener> listenForDivision() {
  auto socket = listenOnPort(0);
  if (!socket.ok())
    return socket.status();
  auto address = addressOf(*socket);
  if (!address.ok())
    return address.status();
  return DivisionListener{std::move(*socket), address->port};
}

StatusOr<std::unique_ptr<Group>> divideMachineGroup(const Group &parent, const Division &division,
                                                    DivisionListener own,
                                                    const Deadline &deadline) {
  const Origin &origin = static_cast<const MachineGroup &>(parent).origin;
  const auto &members = division.members;
  // Sizes are the division's; the host id and the link timeout are the parent's.
  MachineGroupOptions options;
  options.numRanks = static_cast<uint32_t>(members.size());
  options.rank = static_cast<uint32_t>(
      std::ranges::find(members, parent.rank(), &Division::Member::parentRank) - members.begin());
  options.segmentBytes = division.segmentBytes;
  options.heapBytes = division.heapBytes;
  options.orderPolicy = division.orderPolicy;
  options.isOnDevice = origin.isOnDevice;
  options.timeout = std::chrono::ceil<std::chrono::milliseconds>(deadline.remaining());
  options.bell = parent.sharedBell(parent.rank());
  options.silence = origin.silence;
  // The first member is rank 0: it listens at its machine's address and the port that it offers.
  Meeting where;
  where.rank = options.rank;
  where.numRanks = options.numRanks;
  where.root = {origin.addresses[members.front().parentRank]};
  where.root.front().port = members.front().port;
  where.rootName = where.root.front().text();
  where.secret = secretOf(origin.key, division);
  where.isListening = true;
  where.isGone = [&](uint32_t rank) {
    const uint32_t member = members[rank].parentRank;
    return !parent.isAlive(member) || (division.hasGivenUp && division.hasGivenUp(member));
  };
  auto group = Joiner(options).divide(std::move(where), origin.host, std::move(own.socket));
  if (group.ok())
    return group;
  return Status(group.status().code(),
                division.name + ", in whose new communicator ranks have these numbers: " +
                    group.status().message());
}

} // namespace occl::net
