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
  auto made = std::make_unique<Known>(fabric, isSend, peer, core.device->bell);
  core.device->board.addRoom(core.place, 1);
  known = std::move(made);
  // Between threads large data are read in the sender's buffer, which it has back after a failure
  // only when nobody does that any more.
  if (isSend && fabric.sharesAddresses() && peer != fabric.rank())
    core.awaitAfterFailure(peer);
  return *known;
}

/// One for each peer and way; transfers within it keep their order.
void Transfers::divide(Exchange &exchange, std::span<const Transfer> transfers) {
  std::unordered_map<uint64_t, Exchange::Direction *> byDirection;
  for (const Transfer &transfer : transfers) {
    Exchange::Direction *&direction =
        byDirection[uint64_t{transfer.peer} << 1 | static_cast<uint64_t>(transfer.isSend)];
    if (!direction) {
      Known &known = know(transfer.isSend, transfer.peer);
      exchange.directions.push_back(std::make_unique<Exchange::Direction>());
      direction = exchange.directions.back().get();
      // An invocation of which nobody hears but the pair's other rank, by its ring.
      direction->parts.end = known.end.get();
      direction->invocation.collective = &known.shape;
      direction->invocation.id = &known.sequence;
    }
    direction->parts.parts.push_back(transfer.part);
  }
}

/// What has been divided; all at once, so that nobody finds a part of a group.
BlockTask *Transfers::submit(Exchange &exchange, scheduler::Visit *visit) noexcept {
  // What has a request ends after this has returned from what is below.
  exchange.expect(exchange.directions.size() + (exchange.request != 0 ? 1 : 0));
  for (const auto &direction : exchange.directions) {
    // Both ranks count a direction's transfers, so equal numbers belong together.
    uint64_t &next = direction->invocation.id->nextOrdinal;
    direction->parts.firstNumber = direction->invocation.ordinal = next;
    next += direction->parts.parts.size();
    core.open(direction->invocation, direction->task, direction->parts, exchange);
  }
  // A single direction on an empty board is the caller's to begin with.
  BlockTask *claimed =
      visit && exchange.directions.size() == 1
          ? core.device->board.startClaimed(exchange.directions[0]->invocation, *visit)
          : nullptr;
  if (!claimed) {
    InvocationList together;
    for (const auto &direction : exchange.directions)
      together.add(direction->invocation);
    core.device->board.submitTogether(together);
  }
  threadFence(std::memory_order_seq_cst);
  return claimed;
}

void Transfers::prepare(Exchange &exchange, std::span<const Transfer> transfers) {
  std::lock_guard lock(mutex);
  divide(exchange, transfers);
}

void Transfers::begin(Exchange &exchange) noexcept {
  std::lock_guard lock(mutex);
  submit(exchange, nullptr);
}

BlockTask *Transfers::begin(Exchange &exchange, std::span<const Transfer> transfers,
                            scheduler::Visit *visit) {
  std::lock_guard lock(mutex);
  divide(exchange, transfers);
  return submit(exchange, visit);
}

StatusOr<RequestId> Transfers::start(std::span<const Transfer> transfers, const Callback &callback,
                                     bool callbackNeverBlocks) {
  if (callback && !callbackNeverBlocks)
    if (Status thread = core.device->callbacks.ensureThread(); !thread.ok())
      return thread;
  auto exchange = std::make_unique<Exchange>();
  prepare(*exchange, transfers);
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
  begin(*exchange);
  core.stats.groups.fetch_add(1, std::memory_order_relaxed);
  core.place.pin();
  core.endPart(*exchange.release(), StatusCode::Success);
  // If this was the last part, its callback is queued.
  core.runCallbacks();
  core.place.unpin();
  return *request;
}

} // namespace occl::daemon
