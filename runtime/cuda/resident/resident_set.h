// The resident daemons of one CUDA device: one for each kernel. They are shared by all
// communicators that share the host's executors (daemon::Device), so there is one scheduler state
// for a process and device; ranks that are threads, each with executors of its own, have one each.
#pragma once

#include "runtime/base/status.h"
#include "runtime/cuda/resident/resident_daemon.h"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>

namespace occl::cuda::resident {

struct SetOptions {
  int device = 0;
  /// Thread blocks of the device that a kernel takes; 0: what the set has, or the default.
  uint32_t numExecutors = 0;
  bool preemption = true;
  /// DaemonOptions::isStrict; nothing: as the set is, or not.
  std::optional<bool> isStrict;
};

class ResidentSet {
public:
  static constexpr uint32_t kDefaultExecutors = 16;

  /// The set of `sharer` on the device: there is one as long as somebody has it. InvalidArgument if
  /// that has other options; SystemError. Everything is allocated and loaded here.
  static StatusOr<std::shared_ptr<ResidentSet>> of(const void *sharer, const SetOptions &options);

  /// By kernelFor().
  ResidentDaemon &daemon(uint32_t kernel) { return *daemons[kernel]; }

private:
  explicit ResidentSet(const SetOptions &options) : options(options) {}

  const SetOptions options;
  std::array<std::unique_ptr<ResidentDaemon>, kNumKernels> daemons;
};

} // namespace occl::cuda::resident
