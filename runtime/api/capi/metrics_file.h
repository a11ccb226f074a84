// Counters for Prometheus in files, as OCCL_METRICS asks.
#pragma once

#include <cstdint>

struct occlComm;

namespace occl::communicator {

/// If OCCL_METRICS is set, the communicator's counters are written to a file of its own, which it
/// names: <OCCL_METRICS>.<rank of the process's first communicator>.<process>.<number in the
/// process>.prom. Programs with privileges that their user has not write none.
/// Thread safety: none, but for the exit of the process.
class MetricsFile {
public:
  /// From now on the exit of the process writes the file; of hosts, not of devices.
  explicit MetricsFile(occlComm &comm);
  /// Writes nothing, and nor does the exit of the process.
  ~MetricsFile();
  MetricsFile(const MetricsFile &) = delete;
  MetricsFile &operator=(const MetricsFile &) = delete;

  /// Writes it now, with all that the communicator has done, and not when the process exits.
  /// Complains on standard error about what it cannot do. The exit of the process does not wait.
  void end();

private:
  /// The exit of the process does not know it any more.
  void forget();

  occlComm &comm;
  uint32_t rank = 0;   // of the process's first communicator
  uint32_t number = 0; // 0: nobody asks, or no more
};

} // namespace occl::communicator
