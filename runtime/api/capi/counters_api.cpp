// Counters of collectives and thread blocks.
#include "runtime/api/capi/counters.h"
#include "runtime/api/capi/error.h"
#include "runtime/api/occl_insight.h"

#include "runtime/base/tick_clock.h"

#include <algorithm>
#include <cstring>

using namespace occl;
using namespace occl::communicator;

namespace {

// The interface numbers its wait reasons as the runtime does.
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
  // Hosts count the queue once for each invocation, when it starts.
  to.queueLengths = from.queueLengths.get();
  to.longestQueue = from.longestQueue.get();
}

void add(occlBlockStats_t &to, const insight::BlockCounters &from, const TickScale &scale) {
  to.contextLoads += from.contextLoads.get();
  to.contextSaves += from.contextSaves.get();
  to.preemptions += from.preemptions.get();
  to.slices += from.slices.get();
  to.bytesSent += from.bytesSent.get();
  to.bytesReceived += from.bytesReceived.get();
  to.runningNs += scale.nanoseconds(from.runningTicks.get());
  to.queueLengths += from.queueLengths.get();
  to.longestQueue = std::max(to.longestQueue, from.longestQueue.get());
  for (size_t r = 0; r < from.waits.size(); ++r) {
    to.waits[r] += from.waits[r].count.get();
    to.waitNs[r] += scale.nanoseconds(from.waits[r].ticks.get());
  }
}

void fill(occlBlockStats_t &to, const insight::CollectiveCounters &from, uint32_t begin,
          uint32_t end) {
  TickScale scale;
  for (uint32_t b = begin; b < end; ++b)
    add(to, from.block(b), scale);
}

Status noBlock(const std::string &collective, size_t numBlocks, uint32_t block) {
  return {StatusCode::InvalidArgument,
          "collective " + collective + " has " + std::to_string(numBlocks) +
              " thread blocks on this rank, not " + std::to_string(block)};
}

void fill(occlCollectiveStats_t &to, const cuda::CollectiveCounts &from) {
  to.submitted = from.submitted;
  to.completed = from.completed;
  to.failed = from.failed;
  to.finishNs = from.finishNs;
  to.longestFinishNs = from.longestFinishNs;
  to.startNs = from.startNs;
  to.announceNs = from.announceNs;
  to.numBlocks = static_cast<uint32_t>(from.blocks.size());
  // Devices count the queue for each thread block.
  for (const cuda::CollectiveCounts::Block &block : from.blocks) {
    to.queueLengths += block.queueLengths;
    to.longestQueue = std::max(to.longestQueue, block.longestQueue);
  }
}

void add(occlBlockStats_t &to, const cuda::CollectiveCounts::Block &from) {
  to.contextLoads += from.visits;
  to.contextSaves += from.moves;
  to.preemptions += from.preemptions;
  to.slices += from.slices;
  to.bytesSent += from.bytesSent;
  to.bytesReceived += from.bytesReceived;
  to.runningNs += from.runningNs;
  to.queueLengths += from.queueLengths;
  to.longestQueue = std::max(to.longestQueue, from.longestQueue);
  for (size_t r = 0; r < from.waits.size(); ++r) {
    to.waits[r] += from.waits[r];
    to.waitNs[r] += from.waitNs[r];
  }
}

Status readDeviceBlockStats(cuda::DeviceRank &gpu, uint64_t id, uint32_t block,
                            occlBlockStats_t &stats) {
  auto counts = gpu.counts(id);
  if (!counts.ok())
    return counts.status();
  if (block == OCCL_ALL_BLOCKS)
    for (const cuda::CollectiveCounts::Block &each : counts->blocks)
      add(stats, each);
  else if (block < counts->blocks.size())
    add(stats, counts->blocks[block]);
  else
    return noBlock(counts->name, counts->blocks.size(), block);
  return {};
}

Status unknown(uint64_t id) {
  return {StatusCode::InvalidArgument,
          "no collective with id " + std::to_string(id) + " has been started, or none for long"};
}

/// Copies what the caller's version of the struct has room for.
template <class T> void copyOut(T *to, T known) {
  // An older caller's struct has room for the first fields only.
  known.size = std::min(to->size, sizeof known);
  std::memcpy(to, &known, known.size);
}

} // namespace

namespace occl::communicator {

Status readStats(occlComm &comm, uint64_t id, occlCollectiveStats_t &stats) {
  if (comm.gpu) {
    auto counts = comm.gpu->counts(id);
    if (counts.ok())
      fill(stats, *counts);
    return counts.status();
  }
  // Under the admission's lock, so that the sequence stays meanwhile.
  bool isThere = comm.daemon->inspect(id, [&](const daemon::IdState &sequence) {
    stats.numBlocks = sequence.counters.numBlocks();
    fill(stats, sequence.counters);
  });
  return isThere ? Status() : unknown(id);
}

Status readBlockStats(occlComm &comm, uint64_t id, uint32_t block, occlBlockStats_t &stats) {
  if (comm.gpu)
    return readDeviceBlockStats(*comm.gpu, id, block, stats);
  // The answer stays so if the sequence is not known.
  Status status = unknown(id);
  comm.daemon->inspect(id, [&](const daemon::IdState &sequence) {
    uint32_t numBlocks = sequence.counters.numBlocks();
    bool isOne = block != OCCL_ALL_BLOCKS;
    // The number of thread blocks is known only here, under the admission's lock.
    if (isOne && block >= numBlocks) {
      status = noBlock(sequence.describe(), numBlocks, block);
      return;
    }
    fill(stats, sequence.counters, isOne ? block : 0, isOne ? block + 1 : numBlocks);
    status = {};
  });
  return status;
}

} // namespace occl::communicator

occlResult_t occlCollectiveGetStats(occlComm_t comm, uint64_t id, occlCollectiveStats_t *stats) {
  if (!comm || !stats || stats->size < sizeof(size_t))
    return reportInvalid("occlCollectiveGetStats",
                         "comm and stats must not be NULL, and stats->size must be set");
  return guarded("occlCollectiveGetStats", comm, [&]() -> Status {
    occlCollectiveStats_t known{};
    Status status = readStats(*comm, id, known);
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
  return guarded("occlCollectiveGetBlockStats", comm, [&]() -> Status {
    occlBlockStats_t known{};
    Status status = readBlockStats(*comm, id, block, known);
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
  return guarded("occlCommGetCollectives", comm, [&]() -> Status {
    std::vector<uint64_t> all = comm->sequences();
    // The count is of all ids, so the caller sees whether its array was too small.
    *count = all.size();
    std::copy_n(all.begin(), std::min(capacity, all.size()), ids);
    return {};
  });
}
