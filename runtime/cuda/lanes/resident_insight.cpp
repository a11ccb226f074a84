// What a rank on devices says about itself: who waits for whom, counters.
#include "runtime/cuda/lanes/resident_calls.h"
#include "runtime/cuda/resident/trace/device_clock.h"
#include "runtime/cuda/resident/trace/mark_events.h"
#include "runtime/cuda/watch/waiting.h"

#include "runtime/base/long_wait.h"
#include "runtime/control/records/failure_word.h"
#include "runtime/observe/report/ask_ranks.h"
#include "runtime/observe/report/wait_report.h"
#include "runtime/observe/report/wait_text.h"

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <utility>

namespace occl::cuda {

namespace {

using interpreter::BlockReason;
using transport::WaitEdge;
using transport::WaitReason;

constexpr uint64_t kPeerCheckNs = 20'000'000;

Ticks ticksOf(uint64_t nanoseconds) {
  return static_cast<Ticks>(static_cast<double>(nanoseconds) *
                            resident::nominalTicksPerNanosecond());
}

/// The same wait, however long.
bool isSame(WaitEdge a, const WaitEdge &b) {
  a.since = b.since;
  return a == b;
}

std::vector<uint32_t> listOf(uint64_t bits) {
  std::vector<uint32_t> ranks;
  for (uint32_t r = 0; r < kMaxRanks; ++r)
    if ((bits >> r & 1) != 0)
      ranks.push_back(r);
  return ranks;
}

} // namespace

insight::KnownCollective ResidentRank::lookUp(uint64_t id) {
  std::lock_guard lock(mutex);
  auto found = sequences.find(id);
  if (found == sequences.end())
    return {"(id " + std::to_string(id) + ")", nullptr};
  return {found->second->name, found->second->last->plan, found->second->last->rounds};
}

// --- as a tenant ---

/// As reports have it: an epoch of a partitioned collective by its own number, from 0 on; else the
/// number in the lane.
resident::InvocationName ResidentRank::counted(resident::InvocationName invocation) {
  if (!transport::partitionedCollectiveOf(invocation.collective))
    return invocation;
  std::lock_guard lock(mutex);
  if (auto found = sequences.find(invocation.collective); found != sequences.end())
    if (auto epoch = found->second->epochs.find(invocation.ordinal);
        epoch != found->second->epochs.end())
      invocation.ordinal = epoch->second - 1;
  return invocation;
}

bool ResidentRank::Share::isAsked() const {
  return rank.fabric.own().words().reportsAsked.load(std::memory_order_acquire) !=
         lookedFor.load(std::memory_order_relaxed);
}

WaitEdge ResidentRank::edgeOf(const resident::TenantWait &wait,
                              std::span<const WaitEdge> before) const {
  const resident::OpenTask &task = wait.task;
  const bool isOwn = task.reason == BlockReason::Dependency;
  WaitEdge edge;
  edge.collective = wait.invocation.collective;
  edge.ordinal = wait.invocation.ordinal;
  edge.block = task.block;
  edge.instruction = task.instruction;
  edge.reason = resident::waitReasonOf(task.reason);
  edge.peer = isOwn ? fabric.rank() : task.peer;
  edge.thing = isOwn ? task.what : 0;
  // As long as it is the same wait it is the same edge.
  auto known = std::ranges::find_if(before, [&](const WaitEdge &b) { return isSame(edge, b); });
  edge.since = known != before.end() ? known->since : ticks() - ticksOf(task.waitedNs);
  return edge;
}

void ResidentRank::Share::look(std::span<const resident::TenantWait> waits) {
  const uint32_t asked = rank.fabric.own().words().reportsAsked.load(std::memory_order_acquire);
  std::vector<WaitEdge> now; // what waits for other ranks is in no daemon
  if (kernel == 0)
    now = rank.edgesOfWaiting();
  std::lock_guard lock(rank.lookMutex);
  missing.clear();
  for (const WaitEdge &edge : now)
    missing[{edge.collective, edge.ordinal}] |= uint64_t{1} << edge.peer;
  for (resident::TenantWait wait : waits) {
    wait.invocation = rank.counted(wait.invocation);
    now.push_back(rank.edgeOf(wait, edges));
    missing[{wait.invocation.collective, wait.invocation.ordinal}] = wait.missing;
  }
  edges = std::move(now);
  lookedFor.store(asked, std::memory_order_relaxed);
  rank.publish();
  if (rank.fabric.failed())
    return;
  rank.checkPeers();
  if (!rank.options.scheduler->options.preemption)
    rank.checkDeadlock();
}

/// The edges of all shares, and that these have looked.
void ResidentRank::publish() {
  std::vector<WaitEdge> all;
  transport::SegmentHeader &header = fabric.own().header();
  // A report is answered once all attached shares have looked.
  uint32_t asked = fabric.own().words().reportsAsked.load(std::memory_order_acquire);
  for (const auto &share : shares) {
    all.insert(all.end(), share->edges.begin(), share->edges.end());
    if (share->isAttached.load(std::memory_order_acquire))
      asked = std::min(asked, share->lookedFor.load(std::memory_order_relaxed));
  }
  header.waitEdges.publish(all);
  header.waitEdges.confirm();
  header.reportsAnswered.store(asked, std::memory_order_release);
  hasPublished.store(!all.empty(), std::memory_order_relaxed);
}

/// Something has ended: what was published is not so any more.
void ResidentRank::forgetWaits() {
  if (!hasPublished.load(std::memory_order_relaxed))
    return;
  std::lock_guard lock(lookMutex);
  for (auto &share : shares)
    share->edges.clear();
  fabric.own().header().waitEdges.clear();
  hasPublished.store(false, std::memory_order_relaxed);
}

void ResidentRank::Share::endLate(const resident::InvocationName &invocation,
                                  std::span<const resident::TenantWait>) {
  // The deadline of one call ends the communicator.
  rank.fabric.fail(
      {StatusCode::Timeout,
       describeLate(invocation, "did not end on rank " + std::to_string(rank.fabric.rank()) +
                                    " before its deadline")});
}

void ResidentRank::Share::reportLate(const resident::InvocationName &invocation) {
  reportLongWait(describeLate(invocation, "has been in flight on rank " +
                                              std::to_string(rank.fabric.rank()) + " for " +
                                              describeLongWait() + " and goes on"));
}

std::string ResidentRank::Share::describeLate(const resident::InvocationName &inLane,
                                              const std::string &what) {
  const resident::InvocationName invocation = rank.counted(inLane);
  std::string text = "collective " + rank.lookUp(invocation.collective).name + ", " +
                     transport::describeInvocation(invocation.collective, invocation.ordinal) +
                     ", " + what;
  // A wait for another rank says more than one for a thread block of the own.
  const WaitEdge *shown = nullptr;
  std::lock_guard lock(rank.lookMutex);
  for (const WaitEdge &edge : edges)
    if (edge.collective == invocation.collective && edge.ordinal == invocation.ordinal &&
        (!shown || shown->reason == WaitReason::Dependency))
      shown = &edge;
  if (shown)
    text += ": " + insight::describeWait(
                       rank.fabric.rank(), *shown, [&](uint64_t id) { return rank.lookUp(id); },
                       TickScale(), ticks());
  // Too few connections may be the reason.
  text += describeConnections(rank.options.device, waitingOnDevices().count(rank.options.device),
                              connectionsFrom(std::getenv("CUDA_DEVICE_MAX_CONNECTIONS")));
  return text;
}

/// One that is gone, or has left, and is waited for.
void ResidentRank::checkPeers() {
  const Ticks now = ticks();
  if (now < nextPeerCheck)
    return;
  nextPeerCheck = now + ticksOf(kPeerCheckNs);
  std::vector<bool> waitedFor(fabric.numRanks(), false);
  for (const auto &share : shares)
    for (const WaitEdge &edge : share->edges)
      if (edge.reason != WaitReason::Dependency && edge.peer < waitedFor.size())
        waitedFor[edge.peer] = true;
  for (uint32_t r = 0; r < waitedFor.size(); ++r) {
    const bool isGone = waitedFor[r] && r != fabric.rank() && fabric.isGone(r);
    if (isGone && seenGone[r]) // what it did before has been looked at since
      return fabric.fail(
          {StatusCode::PeerFailed, fabric.describeGone(r) + "; " + describeWaitForLocked(r)});
    seenGone[r] = isGone;
  }
}

std::string ResidentRank::describeWaitFor(uint32_t peer) {
  std::lock_guard lock(lookMutex);
  return describeWaitForLocked(peer);
}

std::string ResidentRank::describeWaitForLocked(uint32_t peer) {
  for (const auto &share : shares)
    for (const WaitEdge &edge : share->edges)
      if (edge.reason != WaitReason::Dependency && edge.peer == peer)
        return insight::describeWait(
            fabric.rank(), edge, [this](uint64_t id) { return lookUp(id); }, TickScale(), ticks());
  return {};
}

/// Without preemption conflicting orders end so.
void ResidentRank::checkDeadlock() {
  // Each rank publishes its waits; the detector looks for a cycle among them.
  std::vector<transport::WaitSnapshot> ranks;
  for (uint32_t r = 0; r < fabric.numRanks(); ++r)
    ranks.push_back(fabric.of(r).header().waitEdges.read());
  std::vector<daemon::RankWait> cycle = detector.update(std::move(ranks), fabric.rank());
  if (cycle.empty())
    return;
  std::vector<std::string> waits;
  TickScale scale;
  for (const daemon::RankWait &wait : cycle)
    waits.push_back(insight::describeWait(
        wait.waiter, wait.edge, [this](uint64_t id) { return lookUp(id); }, scale, ticks()));
  fabric.fail({StatusCode::Deadlock,
               insight::describeCycle(waits, transport::FailureCause::kTextBytes - 1)});
}

// --- to who asks ---

std::string ResidentRank::report() {
  // Its daemons' threads answer for this rank.
  std::vector<insight::RankReport> ranks = daemon::askRanks(fabric, [] {});
  std::vector<insight::MissingRanks> missing;
  {
    std::lock_guard lock(lookMutex);
    for (const auto &share : shares)
      for (const auto &[invocation, bits] : share->missing)
        missing.push_back({invocation.first, invocation.second, listOf(bits)});
  }
  return insight::describeWaits(
      ranks, missing, [this](uint64_t id) { return lookUp(id); }, ticks());
}

std::vector<uint64_t> ResidentRank::ids() {
  std::lock_guard lock(mutex);
  std::vector<uint64_t> all;
  for (const auto &[id, sequence] : sequences)
    all.push_back(id);
  return all;
}

StatusOr<CollectiveCounts> ResidentRank::counts(uint64_t id) {
  std::vector<LaneName> counted;
  return counts(id, counted);
}

/// without: lanes that are counted already, to which it adds its own.
StatusOr<CollectiveCounts> ResidentRank::counts(uint64_t id, std::vector<LaneName> &without) {
  // A copy is taken under the lock; the device is asked without it.
  CollectiveCounts counted;
  Sequence sequence; // as it is now
  {
    std::lock_guard lock(mutex);
    auto found = sequences.find(id);
    if (found == sequences.end())
      return Status(StatusCode::InvalidArgument, "no collective with id " + std::to_string(id) +
                                                     " has been started, or none for long");
    sequence = *found->second;
  }
  counted.name = sequence.name;
  counted.submitted = sequence.submitted;
  counted.completed = sequence.completed;
  counted.failed = sequence.failed;
  counted.finishNs = sequence.finishNs;
  counted.longestFinishNs = sequence.longestFinishNs;
  // A lane that several ids have had is counted once.
  const bool hasLane = sequence.lane && std::ranges::find(without, *sequence.lane) == without.end();
  if (hasLane)
    without.push_back(*sequence.lane);
  Status status = countBlocks(sequence, hasLane, counted);
  if (!status.ok())
    return status;
  return counted;
}

/// What the device has counted is of its lane.
Status ResidentRank::countBlocks(const Sequence &sequence, bool hasLane,
                                 CollectiveCounts &counted) {
  counted.blocks.resize(sequence.moved.size());
  std::vector<resident::BlockCounts> read(counted.blocks.size());
  if (sequence.lane && hasLane)
    if (Status status = lanes.readCounts(*sequence.lane, read); !status.ok())
      return status;
  // Thread block 0 counts the begin for all of them.
  if (!read.empty()) {
    counted.startNs = read[0].startNs;
    counted.announceNs = read[0].announceNs + sequence.waitedNs;
  }
  for (uint32_t b = 0; b < counted.blocks.size(); ++b) {
    CollectiveCounts::Block &block = counted.blocks[b];
    const resident::BlockCounts &from = read[b];
    block = {from.visits,
             from.moves,
             from.preemptions,
             from.slices,
             from.runningNs,
             from.queueLengths,
             from.longestQueue,
             sequence.moved[b].sent,
             sequence.moved[b].received,
             {},
             {}};
    // Reason 0 stands for no wait.
    for (uint32_t r = 1; r < resident::BlockCounts::kReasons; ++r) {
      const auto reason = static_cast<size_t>(resident::waitReasonOf(static_cast<BlockReason>(r)));
      block.waits[reason] += from.waits[r];
      block.waitNs[reason] += from.waitNs[r];
    }
  }
  return {};
}

void ResidentRank::addTo(RankCounts &sum, const CollectiveCounts &counted) {
  sum.submitted += counted.submitted;
  sum.completed += counted.completed;
  sum.failed += counted.failed;
  for (const CollectiveCounts::Block &block : counted.blocks) {
    sum.preemptions += block.preemptions;
    sum.visits += block.visits;
    sum.moves += block.moves;
    sum.bytesSent += block.bytesSent;
    sum.bytesReceived += block.bytesReceived;
    sum.queueLengths += block.queueLengths;
    sum.longestQueue = std::max(sum.longestQueue, block.longestQueue);
  }
}

RankCounts ResidentRank::totals() {
  RankCounts sum;
  {
    std::lock_guard lock(mutex);
    sum = past;
  }
  // Lanes are shared by ids, so each is added once.
  std::vector<LaneName> lanesCounted;
  for (uint64_t id : ids())
    if (auto counted = counts(id, lanesCounted); counted.ok())
      addTo(sum, *counted);
  // A kernel that is still there has started once more than it has quit.
  for (uint32_t k = 0; k < resident::kNumKernels; ++k) {
    sum.starts += daemonOf(k).starts();
    sum.quits += daemonOf(k).starts() - (daemonOf(k).hasQuit() ? 0 : 1);
  }
  return sum;
}

// --- traces ---

Status ResidentRank::startTrace() {
  std::lock_guard lock(registering);
  Status status;
  uint32_t started = 0;
  for (; started < resident::kNumKernels && status.ok(); ++started)
    if (shares[started]->isAttached.load(std::memory_order_relaxed))
      status = daemonOf(started).startMarks();
  isTracing = status.ok();
  tracedSince = ticks();
  if (!status.ok()) // the last one has not begun
    for (uint32_t k = 0; k + 1 < started; ++k)
      if (shares[k]->isAttached.load(std::memory_order_relaxed))
        (void)daemonOf(k).takeMarks(*shares[k]).ok();
  return status;
}

StatusOr<insight::Trace::Recording> ResidentRank::stopTrace() {
  std::lock_guard lock(registering);
  insight::Trace::Recording all;
  // All kernels stop, even after an error, of which the last one is returned.
  Status status;
  for (const auto &share : shares) {
    if (!share->isAttached.load(std::memory_order_relaxed))
      continue;
    auto recording = stopTraceOf(*share);
    if (!recording.ok()) {
      status = recording.status();
      continue;
    }
    all.events.insert(all.events.end(), recording->events.begin(), recording->events.end());
    all.dropped += recording->dropped;
  }
  isTracing = false;
  std::ranges::stable_sort(all.events, {}, &insight::TraceEvent::begin);
  return status.ok() ? StatusOr<insight::Trace::Recording>(std::move(all)) : status;
}

StatusOr<insight::Trace::Recording> ResidentRank::stopTraceOf(const Share &share) {
  auto taken = daemonOf(share.kernel).takeMarks(share);
  if (!taken.ok())
    return taken.status();
  std::erase_if(taken->requests,
                [&](const auto &request) { return request.submitted < tracedSince; });
  insight::Trace::Recording recording;
  recording.events = resident::eventsOf(taken->executors, taken->requests, taken->clock,
                                        fabric.rank(), insight::deviceExecutor(share.kernel, 0));
  recording.dropped = taken->overwritten;
  return recording;
}

} // namespace occl::cuda
