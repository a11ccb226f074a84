// Sends and receives of a rank, as tasks on the board.
#include "runtime/rank/transfers.h"

#include "runtime/sync/atomic.h"

#include <string>
#include <unordered_map>
#include <utility>

namespace occl::daemon {

namespace {

static_assert(bootstrap::kMaxRanks <= transport::Segment::kMostRanks &&
              bootstrap::kMaxRanks <= 1u << transport::kPairRankBits);

Status invalid(std::string text) { return {StatusCode::InvalidArgument, std::move(text)}; }

std::unique_ptr<transfer::End> makeEnd(const Fabric &fabric, bool isSend, uint32_t peer,
                                       Doorbell &selfBell) {
  if (isSend)
    return std::make_unique<transfer::SendEnd>(fabric, peer, selfBell);
  return std::make_unique<transfer::ReceiveEnd>(fabric, peer, selfBell);
}

} // namespace

Transfers::Known::Known(const Fabric &fabric, bool isSend, uint32_t peer, Doorbell &selfBell)
    : end(makeEnd(fabric, isSend, peer, selfBell)), sequence(transport::idOf(end->pair), 0) {
  shape.direct.byThisRank = !isSend && fabric.sharesAddresses();
  sequence.counters.ensure(1);
}

Transfers::Transfers(Core &core)
    : core(core), sends(core.fabric->numRanks()), receives(core.fabric->numRanks()) {}
Transfers::~Transfers() = default;

Status Transfers::check(const Transfer &transfer) const {
  constexpr uint64_t kMostCount = uint64_t{1} << 58;
  if (transfer.peer >= core.fabric->numRanks())
    return invalid("peer is " + std::to_string(transfer.peer) + ", the communicator has " +
                   std::to_string(core.fabric->numRanks()) + " ranks");
  if (transfer.part.count > kMostCount)
    return invalid("count " + std::to_string(transfer.part.count) + " is more than 2^58");
  if (!transfer.part.buffer && transfer.part.count != 0)
    return invalid("buffer is NULL and count is " + std::to_string(transfer.part.count));
  // Without preemption an executor keeps to one invocation: a send would keep it from a receive.
  if (!core.device->options.preemption)
    return invalid("transfers need preemption, which config->preemption has turned off");
  return {};
}

Transfers::Known &Transfers::know(bool isSend, uint32_t peer) {
  std::unique_ptr<Known> &known = (isSend ? sends : receives)[peer];
  if (known)
    return *known;
  const Fabric &fabric = *core.fabric;
  known = std::make_unique<Known>(fabric, isSend, peer, core.device->bell);
  // Between threads large data are read in the sender's buffer, which it has back after a failure
  // only when nobody does that any more.
  if (isSend && fabric.sharesAddresses() && peer != fabric.rank())
    core.awaitAfterFailure(peer);
  return *known;
}

/// An invocation of which nobody hears but the pair's other rank, by its ring.
void Transfers::prepare(Exchange &exchange, Exchange::Direction &direction, Known &known) {
  // Both ranks count a direction's transfers, so equal numbers belong together.
  direction.parts.firstNumber = known.next;
  known.next += direction.parts.parts.size();
  direction.parts.end = known.end.get();
  direction.invocation.collective = &known.shape;
  direction.invocation.id = &known.sequence;
  direction.invocation.ordinal = direction.parts.firstNumber;
  core.open(direction.invocation, direction.task, direction.parts, exchange);
}

/// Into directions. Nothing has been changed if it throws.
std::vector<Transfers::Known *> Transfers::divide(Exchange &exchange,
                                                  std::span<const Transfer> transfers) {
  std::unordered_map<uint64_t, Exchange::Direction *> byDirection;
  std::vector<Known *> knowns;
  for (const Transfer &transfer : transfers) {
    // One entry for each peer and direction; transfers within it keep their order.
    Exchange::Direction *&direction =
        byDirection[uint64_t{transfer.peer} << 1 | static_cast<uint64_t>(transfer.isSend)];
    if (!direction) {
      knowns.push_back(&know(transfer.isSend, transfer.peer));
      exchange.directions.push_back(std::make_unique<Exchange::Direction>());
      direction = exchange.directions.back().get();
    }
    direction->parts.parts.push_back(transfer.part);
  }
  return knowns;
}

BlockTask *Transfers::begin(Exchange &exchange, std::span<const Transfer> transfers,
                            scheduler::Visit *visit) {
  std::lock_guard lock(mutex);
  const std::vector<Known *> knowns = divide(exchange, transfers);
  std::vector<OpenInvocation *> invocations;
  invocations.reserve(knowns.size());
  // What has a request ends after this has returned from what is below.
  exchange.expect(knowns.size() + (exchange.request != 0 ? 1 : 0));
  // All at once, so that nobody finds a part of a group.
  for (size_t i = 0; i < knowns.size(); ++i) {
    prepare(exchange, *exchange.directions[i], *knowns[i]);
    invocations.push_back(&exchange.directions[i]->invocation);
  }
  // A single direction on an empty board is the caller's to begin with.
  BlockTask *claimed = visit && invocations.size() == 1
                           ? core.device->board.startClaimed(*invocations[0], *visit)
                           : nullptr;
  if (!claimed)
    core.device->board.submitTogether(invocations);
  threadFence(std::memory_order_seq_cst);
  return claimed;
}

StatusOr<RequestId> Transfers::start(std::span<const Transfer> transfers, const Callback &callback,
                                     bool callbackNeverBlocks) {
  if (callback && !callbackNeverBlocks)
    if (Status thread = core.device->callbacks.ensureThread(); !thread.ok())
      return thread;
  auto exchange = std::make_unique<Exchange>();
  const auto request =
      core.requests.open(callback, {transport::kTransferGroups, core.stats.groups.load()});
  if (!request)
    return Status(StatusCode::Again, "nothing free now: " + core.requests.describeFull() +
                                         ". Wait for a completion, then call again");
  exchange->request = *request;
  exchange->hasCallback = static_cast<bool>(callback);
  exchange->callbackNeverBlocks = callbackNeverBlocks;
  // One that is nobody's yet, so that the exchange stays until all have begun.
  core.openTransfers.fetch_add(1, std::memory_order_relaxed);
  if (callback)
    core.device->openWithCallback.fetch_add(1, std::memory_order_relaxed);
  try {
    begin(*exchange, transfers);
  } catch (...) { // there is no memory; nothing has begun
    core.openTransfers.fetch_sub(1, std::memory_order_release);
    if (callback)
      core.device->openWithCallback.fetch_sub(1, std::memory_order_relaxed);
    core.requests.cancel(*request);
    throw;
  }
  core.stats.groups.fetch_add(1, std::memory_order_relaxed);
  core.place.pin();
  core.endPart(*exchange.release(), StatusCode::Success);
  // If this was the last part, its callback is queued.
  core.runCallbacks();
  core.place.unpin();
  return *request;
}

} // namespace occl::daemon
