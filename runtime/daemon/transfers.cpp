#include "runtime/daemon/transfers.h"

#include "runtime/base/atomic.h"

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

bool Exchange::isOver() {
  while (ended < directions.size() && directions[ended]->invocation.own.isThere())
    ++ended;
  return ended == directions.size();
}

StatusCode Exchange::take() {
  StatusCode result = StatusCode::Success;
  for (const auto &direction : directions)
    if (const StatusCode one = direction->invocation.own.take(); result == StatusCode::Success)
      result = one;
  return result;
}

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

/// An invocation of one thread block, of which nobody hears but the pair's other rank, by its ring.
void Transfers::prepare(Exchange::Direction &direction, Known &known) {
  static const interpreter::Program kNone;
  OpenInvocation &invocation = direction.invocation;
  direction.parts.firstNumber = known.next;
  known.next += direction.parts.parts.size();
  invocation.core = &core;
  invocation.place = &core.place;
  invocation.collective = &known.shape;
  invocation.id = &known.sequence;
  invocation.ordinal = direction.parts.firstNumber;
  invocation.transfers = &direction.parts;
  invocation.end = known.end.get();
  invocation.deadline = coarseNow() + core.options.timeout;
  invocation.times.reset(ticks());
  invocation.view.program = &kNone;
  invocation.announcedBelow.store(core.fabric->numRanks() + 1, std::memory_order_relaxed);
  invocation.blocksLeft = 1;
  invocation.tasks = {&direction.task, 1};
  invocation.own.expect();
  direction.task.renew(invocation);
  known.sequence.counters.submitted.add(1);
  core.openTransfers.fetch_add(1, std::memory_order_relaxed);
  core.device->submissions.add();
}

BlockTask *Transfers::begin(Exchange &exchange, std::span<const Transfer> transfers,
                            scheduler::Visit *visit) {
  std::unordered_map<uint64_t, Exchange::Direction *> byDirection;
  std::vector<Known *> knowns;
  std::lock_guard lock(mutex);
  // By direction.
  for (const Transfer &transfer : transfers) {
    Exchange::Direction *&direction =
        byDirection[uint64_t{transfer.peer} << 1 | static_cast<uint64_t>(transfer.isSend)];
    if (!direction) {
      knowns.push_back(&know(transfer.isSend, transfer.peer));
      exchange.directions.push_back(std::make_unique<Exchange::Direction>());
      direction = exchange.directions.back().get();
    }
    direction->parts.parts.push_back(transfer.part);
  }
  // All at once, so that nobody finds a part of a group.
  std::vector<OpenInvocation *> invocations;
  invocations.reserve(knowns.size());
  for (size_t i = 0; i < knowns.size(); ++i) {
    prepare(*exchange.directions[i], *knowns[i]);
    invocations.push_back(&exchange.directions[i]->invocation);
  }
  BlockTask *claimed = visit && invocations.size() == 1
                           ? core.device->board.startClaimed(*invocations[0], *visit)
                           : nullptr;
  if (!claimed)
    core.device->board.submitTogether(invocations);
  threadFence(std::memory_order_seq_cst);
  return claimed;
}

} // namespace occl::daemon
