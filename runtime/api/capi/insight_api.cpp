// Ranks, sizes, statistics, reports and traces of communicators.
#include "runtime/api/capi/counters.h"
#include "runtime/api/capi/error.h"
#include "runtime/api/capi/handles.h"
#include "runtime/api/metrics/metrics_text.h"
#include "runtime/api/occl_insight.h"
#include "runtime/observe/report/report_signal.h"
#include "support/text/copy_out.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace occl;
using namespace occl::communicator;

namespace {

void fill(occlStats_t &to, const daemon::Stats &from, const daemon::DeviceStats &device) {
  to.submitted = from.submitted;
  to.completed = from.completed;
  to.failed = from.failed;
  to.preemptions = from.preemptions;
  to.contextLoads = from.contextLoads;
  to.contextSaves = from.contextSaves;
  // Executors are the scheduler's, which other communicators may share.
  to.quits = device.quits;
  to.restarts = device.restarts;
  to.bytesSent = from.bytesSent;
  to.bytesReceived = from.bytesReceived;
  to.maxQueueLength = from.maxQueueLength;
  // Each load of a context is a visit, which has seen the length of the queue.
  to.meanQueueLength = to.contextLoads == 0 ? 0
                                            : static_cast<double>(from.queueLengthSum.load()) /
                                                  static_cast<double>(to.contextLoads);
}

void fill(occlStats_t &to, const cuda::RankCounts &from) {
  to.submitted = from.submitted;
  to.completed = from.completed;
  to.failed = from.failed;
  to.preemptions = from.preemptions;
  // A visit loads the context, and saves it if the thread block has moved.
  to.contextLoads = from.visits;
  to.contextSaves = from.moves;
  to.quits = from.quits;
  to.restarts = from.starts;
  to.bytesSent = from.bytesSent;
  to.bytesReceived = from.bytesReceived;
  to.maxQueueLength = from.longestQueue;
  to.meanQueueLength =
      from.visits == 0 ? 0
                       : static_cast<double>(from.queueLengths) / static_cast<double>(from.visits);
}

occlStats_t statsOf(occlComm &comm) {
  occlStats_t stats{};
  if (comm.gpu)
    fill(stats, comm.gpu->totals());
  else
    fill(stats, comm.daemon->stats(), comm.daemon->device()->stats);
  return stats;
}

std::vector<SequenceCounters> countersOf(occlComm &comm) {
  std::vector<SequenceCounters> all;
  for (uint64_t id : comm.sequences()) {
    SequenceCounters &counters = all.emplace_back();
    counters.id = id;
    if (!readStats(comm, id, counters.collective).ok() ||
        !readBlockStats(comm, id, OCCL_ALL_BLOCKS, counters.blocks).ok())
      all.pop_back(); // forgotten meanwhile
  }
  return all;
}

} // namespace

std::string occl::communicator::metricsOf(occlComm &comm, std::string_view labels) {
  return metricsText(comm.daemon->rank(), comm.daemon->numRanks(), statsOf(comm), countersOf(comm),
                     labels);
}

Status occlComm::startTrace(const std::string &pattern) {
  Status status;
  // The device first: if its trace cannot begin, the host's is not begun either.
  if (gpu && !daemon->insight().isTracing())
    status = gpu->startTrace();
  return status.ok() ? daemon->insight().startTrace(pattern) : status;
}

Status occlComm::stopTrace() {
  if (!gpu || !daemon->insight().isTracing())
    return daemon->insight().stopTrace();
  // Events of the device go into the file that the host writes.
  auto recording = gpu->stopTrace();
  Status written = daemon->insight().stopTrace(recording.ok() ? std::move(*recording)
                                                              : insight::Trace::Recording(),
                                               [this](uint64_t id) { return gpu->lookUp(id); });
  // The host's events are written in any case; the device's error is reported.
  return recording.ok() ? written : recording.status();
}

occlResult_t occlCommRank(occlComm_t comm, uint32_t *rank) {
  if (!comm || !rank)
    return reportInvalid("occlCommRank", "comm and rank must not be NULL");
  return guarded("occlCommRank", comm, [&]() -> Status {
    *rank = comm->daemon->rank();
    return {};
  });
}

occlResult_t occlCommSize(occlComm_t comm, uint32_t *numRanks) {
  if (!comm || !numRanks)
    return reportInvalid("occlCommSize", "comm and numRanks must not be NULL");
  return guarded("occlCommSize", comm, [&]() -> Status {
    *numRanks = comm->daemon->numRanks();
    return {};
  });
}

occlResult_t occlCommGetStats(occlComm_t comm, occlStats_t *stats) {
  if (!comm || !stats || stats->size < sizeof(size_t))
    return reportInvalid("occlCommGetStats",
                         "comm and stats must not be NULL, and stats->size must be set");
  return guarded("occlCommGetStats", comm, [&]() -> Status {
    occlStats_t known = statsOf(*comm);
    // An older caller's struct has room for the first fields only.
    known.size = std::min(stats->size, sizeof known);
    std::memcpy(stats, &known, known.size);
    return {};
  });
}

occlResult_t occlCommIsBusy(occlComm_t comm, int *isBusy) {
  if (!comm || !isBusy)
    return reportInvalid("occlCommIsBusy", "comm and isBusy must not be NULL");
  return guarded("occlCommIsBusy", comm, [&]() -> Status {
    *isBusy = comm->isBusy() ? 1 : 0;
    return {};
  });
}

occlResult_t occlCommReport(occlComm_t comm, char *buffer, size_t capacity, size_t *length) {
  if (!comm || (!buffer && capacity != 0))
    return reportInvalid("occlCommReport",
                         "comm must not be NULL, nor buffer unless capacity is 0");
  return guarded("occlCommReport", comm, [&]() -> Status {
    copyOut(comm->report(), buffer, capacity, length);
    return {};
  });
}

occlResult_t occlCommGetMetrics(occlComm_t comm, const char *labels, char *buffer, size_t capacity,
                                size_t *length) {
  if (!comm || (!buffer && capacity != 0))
    return reportInvalid("occlCommGetMetrics",
                         "comm must not be NULL, nor buffer unless capacity is 0");
  return guarded("occlCommGetMetrics", comm, [&]() -> Status {
    const std::string_view given = labels ? labels : "";
    if (const std::string why = whyNoLabels(given); !why.empty())
      return {StatusCode::InvalidArgument, "occlCommGetMetrics: " + why};
    copyOut(metricsOf(*comm, given), buffer, capacity, length);
    return {};
  });
}

const char *occlCommGetLastError(occlComm_t comm) {
  if (!comm || !comm->process.isThisProcess())
    return "";
  // Failures of kernels in streams become known by this look.
  if (comm->gpu)
    comm->gpu->failIfGivenUp();
  try {
    const Status failure = comm->daemon->failure();
    if (failure.ok())
      return "";
    std::lock_guard lock(comm->failureMutex);
    if (comm->failureText.empty()) // what was returned stays as it is
      comm->failureText = failure.message();
    return comm->failureText.c_str();
  } catch (const std::bad_alloc &) { // for the text
    return "out of memory";
  }
}

occlResult_t occlReportOnSignal(int signal, const char *path) {
  return guarded([&] { return insight::reportOnSignal(signal, path ? path : ""); });
}

occlResult_t occlTraceStart(occlComm_t comm, const char *path) {
  if (!comm || !path)
    return reportInvalid("occlTraceStart", "comm and path must not be NULL");
  return guarded("occlTraceStart", comm, [&] { return comm->startTrace(path); });
}

occlResult_t occlTraceStop(occlComm_t comm) {
  if (!comm)
    return reportInvalid("occlTraceStop", "comm must not be NULL");
  return guarded("occlTraceStop", comm, [&] { return comm->stopTrace(); });
}
