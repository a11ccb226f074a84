// Reports on a signal: the handler only writes to an eventfd; a thread of the library, which exists
// while there is somebody to report, does the rest.
#pragma once

#include "runtime/base/status.h"

#include <functional>
#include <memory>
#include <string>

namespace occl::insight {

/// Who has something to report: a communicator's rank.
struct Reporter {
  uint32_t rank = 0;
  uint32_t numRanks = 1;
  std::function<std::string()> report;
};

/// From now on, in this process, each `signal` makes every reporter of it write its report to the
/// file that the pattern names (see pathOf), or to standard error if it is empty; the last call's
/// pattern counts. A handler that was there before is called as well; it may call the one that it
/// has found, and has to return. In a child of fork() the signal makes no reports until the child
/// asks, too. InvalidArgument for a signal that cannot be handled, SystemError: then all is as it
/// was. Thread safety: any.
Status reportOnSignal(int signal, const std::string &pattern);

/// As OCCL_REPORT_SIGNAL (USR1, SIGUSR1 or a number) and OCCL_REPORT_FILE (a pattern) say; nothing
/// if the former is not set. InvalidArgument if it names no signal.
Status reportAsEnvironmentSays();

/// The number of "USR1", "SIGUSR1" or "10"; 0 if it is none.
int signalNamed(const std::string &name);

/// A reporter for as long as this lives. Its end waits for its own report if that is being written,
/// which takes little more than two seconds if nobody reads it, and must not come from within it.
class ReporterRegistration {
public:
  explicit ReporterRegistration(Reporter reporter);
  ~ReporterRegistration();
  ReporterRegistration(const ReporterRegistration &) = delete;
  ReporterRegistration &operator=(const ReporterRegistration &) = delete;

private:
  std::shared_ptr<const Reporter> reporter;
};

} // namespace occl::insight
