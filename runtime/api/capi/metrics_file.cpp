#include "runtime/api/capi/metrics_file.h"

#include "runtime/api/capi/counters.h"
#include "runtime/api/capi/handles.h"
#include "runtime/base/process_identity.h"
#include "runtime/observe/report/output.h"
#include "runtime/sync/mutex.h"

#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <new>
#include <string>
#include <unistd.h>
#include <utility>

namespace occl::communicator {

namespace {

/// Communicators of this process whose files are not written yet, by number.
struct Unwritten {
  Mutex mutex;
  std::map<uint32_t, occlComm *> comms;
  uint32_t last = 0;
  uint32_t rank = 0; // of the first one
};

Unwritten &unwritten() {
  static constinit PerProcess<Unwritten> ofProcess;
  return ofProcess.get();
}

/// Null if nobody asks.
const char *prefixAsked() {
  // Files of a program with privileges must not be where its user says.
  const char *prefix = secure_getenv("OCCL_METRICS");
  return prefix && *prefix ? prefix : nullptr;
}

/// In processes with the same first rank, as of subgroups that are made first, and in several jobs,
/// pids differ; in containers, whose first processes all are 1, ranks do.
void write(uint32_t rank, uint32_t number, occlComm &comm) {
  const char *prefix = prefixAsked();
  if (!prefix)
    return;
  try {
    const std::string process = std::to_string(rank) + "." + std::to_string(getpid()),
                      own = std::to_string(number);
    insight::complain(insight::replace(
        std::string(prefix) + "." + process + "." + own + ".prom",
        metricsOf(comm, "process=\"" + process + "\",communicator=\"" + own + "\"")));
  } catch (const std::bad_alloc &) { // the communicator goes all the same
    std::fputs("OCCL: no memory to write the file of OCCL_METRICS\n", stderr);
  }
}

/// With the lock: a communicator whose file is being written is not destroyed.
void writeAtExit() {
  Unwritten &all = unwritten();
  std::lock_guard lock(all.mutex);
  for (const auto &[number, comm] : all.comms)
    write(all.rank, number, *comm);
  all.comms.clear();
}

} // namespace

MetricsFile::MetricsFile(occlComm &comm) : comm(comm) {
  if (!prefixAsked())
    return;
  static const bool isListed = std::atexit(writeAtExit) == 0;
  Unwritten &all = unwritten();
  std::lock_guard lock(all.mutex);
  if (all.last == 0)
    all.rank = comm.daemon->rank();
  rank = all.rank;
  number = ++all.last;
  // Counters of devices are read by CUDA, which may wait, or be gone, while a process exits.
  if (isListed && !comm.gpu)
    all.comms.emplace(number, &comm);
}

MetricsFile::~MetricsFile() {
  if (number != 0)
    forget();
}

void MetricsFile::forget() {
  Unwritten &all = unwritten();
  std::lock_guard lock(all.mutex);
  all.comms.erase(number);
}

void MetricsFile::end() {
  if (number == 0)
    return;
  forget();
  // Without the lock, which the exit of the process takes: CUDA may wait forever.
  write(rank, std::exchange(number, 0), comm);
}

} // namespace occl::communicator
