#include "runtime/sched/lane.h"

#include "runtime/sched/core.h"
#include "runtime/sync/thread.h"

#include <algorithm>
#include <limits>

namespace occl::daemon {

using interpreter::StepStatus;

// Here, as here a Lane is complete.
IdState::IdState(uint64_t id, uint32_t numRanks) : id(id), peerCells(numRanks), leases(numRanks) {}
IdState::~IdState() = default;

std::unique_ptr<Lane> Lane::make(const IdState &id, const Fabric &fabric) {
  const Collective &collective = *id.resident;
  const interpreter::Binding &binding = *collective.binding;
  if (binding.program().numBlocks != 1 || !binding.steps(0)->isPlain())
    return nullptr;
  // All addresses of all invocations follow from where the rings begin, which must be known of
  // every rank.
  std::unique_ptr<Lane> lane(new Lane);
  const uint32_t own = fabric.rank();
  lane->collective = &collective;
  lane->leasesForgotten = id.leasesForgotten.load(std::memory_order_relaxed);
  lane->ringOffset = id.ringOffset;
  lane->ownBlockBytes = ringBlockBytes(collective, own);
  if (binding.arenaBytes(own) != 0)
    lane->rings.push_back({reinterpret_cast<char *>(fabric.own().arena() + id.ringOffset),
                           lane->ownBlockBytes, interpreter::arenaPlace(own)});
  for (uint32_t r : binding.arenaRanks()) {
    if (r == own)
      continue;
    char *ring = id.leases[r].load(std::memory_order_relaxed);
    if (!ring)
      return nullptr;
    lane->rings.push_back({ring, ringBlockBytes(collective, r), interpreter::arenaPlace(r)});
  }
  lane->aliasing = collective.aliasing;
  return lane;
}

bool Lane::isUpToDate(const IdState &id) const {
  return id.resident == collective &&
         id.leasesForgotten.load(std::memory_order_relaxed) == leasesForgotten;
}

uint64_t Lane::arenaOffset(uint64_t ordinal) const {
  return ringOffset + ordinal % transport::AnnounceCell::kRecords * ownBlockBytes;
}

void Lane::prepare(interpreter::Invocation &view, uint64_t ordinal, const void *input,
                   void *output) const {
  const uint64_t block = ordinal % transport::AnnounceCell::kRecords;
  view.flagBase = collective->binding->flagBase(ordinal);
  view.inPlace = aliasing.isInPlace(input, output);
  view.places[0] = static_cast<char *>(const_cast<void *>(input));
  view.places[1] = static_cast<char *>(output);
  for (const Ring &ring : rings)
    view.places[ring.place] = ring.begin + block * ring.blockBytes;
}

bool LaneRun::run() {
  if (driver.advance() == StepStatus::Blocked && !await()) {
    leave();
    return false;
  }
  // Finished: doorbells, then counters, then the request, which may be gone from there on.
  driver.ring();
  const Ticks total = elapsed(invocation.times.submitted, ticks());
  task.meter.madeAlone(driver.slices(), total > waiting ? total - waiting : 0, numWaits, waiting);
  if (!core.device->board.completeInLane(invocation, total)) {
    leave();
    return false;
  }
  Device &device = *core.device; // it stays, the core perhaps not
  Atomic<uint64_t> &ended = core.ended;
  invocation.finished.store(true, std::memory_order_release); // from here on the admission's
  ended.fetch_add(1, std::memory_order_seq_cst);
  fenceAfterUpdate();
  device.bell.ringFenced(); // threads in wait()
  return true;
}

bool LaneRun::await() {
  const bool hasRung = driver.ring() && invocation.collective->firstStepRingsReaders;
  if (!hasRung)
    core.ringReaders(*invocation.collective);
  waitBegin = ticks();
  for (;;) {
    // It leaves for what only the usual way can do: failure, other tasks, sleeping.
    if (core.fabric->failed() || core.device->board.hasSubmissions() || !mayStay())
      return false;
    offers.haveBegun() ? yieldProcessor() : relax();
    const bool isOver = driver.advance() == StepStatus::Finished;
    if (!isOver && !driver.ring())
      continue;
    const Ticks now = ticks();
    ++numWaits;
    waiting += elapsed(waitBegin, now);
    if (isOver)
      return true;
    waitBegin = now;
    polling = {};
    offers.reset();
  }
}

bool LaneRun::mayStay() {
  const scheduler::Visit alone;
  return (!offers.haveBegun() && polling.goesOn([&] { return core.device->budgetOf(alone); })) ||
         offers.goOn();
}

/// What an executor would have left behind.
void LaneRun::leave() {
  task.context = driver.context();
  invocation.own.expect();
  const Ticks begin = invocation.times.submitted;
  invocation.times.reset(begin);
  if (waitBegin == 0)
    waitBegin = begin;
  if (driver.slices() != 0)
    task.meter.ran(driver.slices(), begin, std::max(begin, waitBegin - waiting));
  const auto timeout = invocation.timeout.count() != 0 ? invocation.timeout : core.options.timeout;
  core.device->board.leaveLane(invocation, coarseNow() + timeout);
  core.device->submissions.open();
}

} // namespace occl::daemon
