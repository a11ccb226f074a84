#include "runtime/api/capi/watching.h"

#include "runtime/api/capi/counters.h"
#include "runtime/api/capi/handles.h"
#include "runtime/api/metrics/stats_text.h"
#include "runtime/api/occl_insight.h"
#include "runtime/observe/report/output.h"

#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>

namespace occl::communicator {

namespace {

/// "" if it is not set.
std::string environment(const char *name) {
  const char *text = std::getenv(name);
  return text ? text : "";
}

std::string statsOf(occlComm &comm) {
  std::vector<NamedStats> all;
  for (uint64_t id : comm.sequences()) {
    NamedStats &stats = all.emplace_back();
    stats.name = comm.nameOf(id);
    if (!readStats(comm, id, stats.collective).ok() ||
        !readBlockStats(comm, id, OCCL_ALL_BLOCKS, stats.blocks).ok())
      all.pop_back(); // forgotten meanwhile
  }
  return describeStats(comm.daemon->rank(), comm.daemon->numRanks(), all);
}

/// Trace and statistics, as far as they are asked for.
void writeDown(occlComm &comm) {
  const daemon::Daemon &daemon = *comm.daemon;
  if (comm.daemon->insight().isTracing())
    insight::complain(comm.stopTrace());
  std::string pattern = environment("OCCL_STATS");
  if (pattern.empty())
    return;
  bool isFile = pattern != "-";
  insight::complain(insight::append(
      isFile ? insight::pathOf(pattern, daemon.rank(), daemon.numRanks()) : "", statsOf(comm)));
}

} // namespace

Watching::Watching(occlComm &comm, bool tracesIfAsked) : comm(comm), metrics(comm) {
  daemon::Daemon &daemon = *comm.daemon;
  insight::complain(insight::reportAsEnvironmentSays());
  if (std::string pattern = environment("OCCL_TRACE"); tracesIfAsked && !pattern.empty())
    insight::complain(comm.startTrace(pattern));
  reporter = std::make_unique<insight::ReporterRegistration>(
      insight::Reporter{daemon.rank(), daemon.numRanks(), [&comm] { return comm.report(); }});
}

void Watching::end() {
  reporter.reset();
  metrics.end();
  try {
    writeDown(comm);
  } catch (const std::bad_alloc &) { // the communicator goes all the same
    std::fputs("OCCL: no memory to write a trace or statistics\n", stderr);
  }
}

} // namespace occl::communicator
