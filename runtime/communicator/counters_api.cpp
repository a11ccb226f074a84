// Counters of collectives and thread blocks.
#include "runtime/communicator/counters.h"
#include "runtime/communicator/error.h"

#include "runtime/base/tick_clock.h"

#include <algorithm>
#include <cstring>

using namespace occl;
using namespace occl::communicator;

namespace {

static_assert(static_cast<size_t>(transport::kNumWaitReasons) == occlNumWaitReasons);
static_assert(occlNumWaitReasons <= OCCL_MAX_WAIT_REASONS);
static_assert(static_cast<int>(transport::WaitReason::Announce) == occlWaitAnnounce);
static_assert(static_cast<int>(transport::WaitReason::Data) == occlWaitData);
static_assert(static_cast<int>(transport::WaitReason::Credit) == occlWaitCredit);
static_assert(static_cast<int>(transport::WaitReason::Dependency) == occlWaitDependency);
static_assert(static_cast<int>(transport::WaitReason::Signal) == occlWaitSignal);
static_assert(static_cast<int>(transport::WaitReason::Begin) == occlWaitBegin);

void fill(occlCollectiveStats_t &to, const insight::CollectiveCounters &from) {
  TickScale scale;
  to.submitted = from.submitted.get();
  to.completed = from.completed.get();
  to.failed = from.failed.get();
  to.startNs = scale.nanoseconds(from.startTicks.get());
  to.announceNs = scale.nanoseconds(from.announceTicks.get());
  to.finishNs = scale.nanoseconds(from.finishTicks.get());
  to.longestFinishNs = scale.nanoseconds(from.longestFinishTicks.get());
  to.queueLengths = from.queueLengths.get();
  to.longestQueue = from.longestQueue.get();
}

void add(occlBlockStats_t &to, const insight::BlockCounters &from, const TickScale &scale) {
  to.contextLoads += from.contextLoads.get();
  to.contextSaves += from.contextSaves.get();
  to.preemptions += from.preemptions.get();
  to.slices += from.slices.get();
  to.runningNs += scale.nanoseconds(from.runningTicks.get());
  to.queueLengths += from.queueLengths.get();
  to.longestQueue = std::max(to.longestQueue, from.longestQueue.get());
  for (size_t r = 0; r < from.waits.size(); ++r) {
    to.waits[r] += from.waits[r].count.get();
    to.waitNs[r] += scale.nanoseconds(from.waits[r].ticks.get());
  }
}

void fill(occlBlockStats_t &to, const daemon::Collective &from, uint32_t begin, uint32_t end) {
  if (!from.counters)
    return;
  TickScale scale;
  uint64_t completed = from.counters->completed.get();
  for (uint32_t b = begin; b < end; ++b) {
    add(to, from.counters->blocks[b], scale);
    daemon::BlockBytes bytes = daemon::bytesOf(from, b);
    to.bytesSent += completed * bytes.sent;
    to.bytesReceived += completed * bytes.received;
  }
}

Status unknown(uint64_t id) {
  return {StatusCode::InvalidArgument,
          "no collective with id " + std::to_string(id) + " is registered"};
}

/// Copies what the caller's version of the struct has room for.
template <class T> void copyOut(T *to, T known) {
  known.size = std::min(to->size, sizeof known);
  std::memcpy(to, &known, known.size);
}

} // namespace

namespace occl::communicator {

Status readStats(daemon::Daemon &daemon, uint64_t id, occlCollectiveStats_t &stats) {
  bool isThere = daemon.inspect(id, [&](const daemon::Collective &collective) {
    stats.numBlocks = collective.binding->program().numBlocks;
    if (collective.counters)
      fill(stats, *collective.counters);
  });
  return isThere ? Status() : unknown(id);
}

Status readBlockStats(daemon::Daemon &daemon, uint64_t id, uint32_t block,
                      occlBlockStats_t &stats) {
  Status status = unknown(id);
  daemon.inspect(id, [&](const daemon::Collective &collective) {
    uint32_t numBlocks = collective.binding->program().numBlocks;
    bool isOne = block != OCCL_ALL_BLOCKS;
    if (isOne && block >= numBlocks) {
      status = {StatusCode::InvalidArgument,
                "collective " + collective.describe() + " has " + std::to_string(numBlocks) +
                    " thread blocks on this rank, not " + std::to_string(block)};
      return;
    }
    fill(stats, collective, isOne ? block : 0, isOne ? block + 1 : numBlocks);
    status = {};
  });
  return status;
}

} // namespace occl::communicator

occlResult_t occlCollectiveGetStats(occlComm_t comm, uint64_t id, occlCollectiveStats_t *stats) {
  if (!comm || !stats || stats->size < sizeof(size_t))
    return reportInvalid("occlCollectiveGetStats",
                         "comm and stats must not be NULL, and stats->size must be set");
  return guarded([&]() -> Status {
    occlCollectiveStats_t known{};
    Status status = readStats(*comm->daemon, id, known);
    if (status.ok())
      copyOut(stats, known);
    return status;
  });
}

occlResult_t occlCollectiveGetBlockStats(occlComm_t comm, uint64_t id, uint32_t block,
                                         occlBlockStats_t *stats) {
  if (!comm || !stats || stats->size < sizeof(size_t))
    return reportInvalid("occlCollectiveGetBlockStats",
                         "comm and stats must not be NULL, and stats->size must be set");
  return guarded([&]() -> Status {
    occlBlockStats_t known{};
    Status status = readBlockStats(*comm->daemon, id, block, known);
    if (status.ok())
      copyOut(stats, known);
    return status;
  });
}

occlResult_t occlCommGetCollectives(occlComm_t comm, uint64_t *ids, size_t capacity,
                                    size_t *count) {
  if (!comm || !count || (!ids && capacity != 0))
    return reportInvalid("occlCommGetCollectives",
                         "comm and count must not be NULL, nor ids unless capacity is 0");
  return guarded([&]() -> Status {
    std::vector<uint64_t> all = comm->daemon->registered();
    *count = all.size();
    std::copy_n(all.begin(), std::min(capacity, all.size()), ids);
    return {};
  });
}
