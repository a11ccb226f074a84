// The resident daemons of one CUDA device: one for each kernel. They are shared by all
// communicators that share the host's executors (daemon::Device), so there is one scheduler state
// for a process and device; ranks that are threads, each with executors of its own, have one each.
#pragma once

#include "runtime/base/status.h"
#include "runtime/cuda/resident/resident_daemon.h"
#include "runtime/sched/policy/policy.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

namespace occl::cuda::resident {

struct SetOptions {
  int device = 0;
  /// Thread blocks of the device that a kernel takes; 0: what the set has, or the default.
  uint32_t numExecutors = 0;
  bool preemption = true;
  scheduler::OrderPolicy order = scheduler::OrderPolicy::Priority;
  /// Nothing: front-heavy.
  std::optional<scheduler::BudgetPolicy> budget;
  /// How long the first blocked task of a pass is polled; 0: the default.
  std::chrono::nanoseconds spin{0};
  /// DaemonOptions::isStrict; nothing: as the set is, or not.
  std::optional<bool> isStrict;
};

class ResidentSet {
public:
  static constexpr uint32_t kDefaultExecutors = 16;

  /// The set of `sharer` on the device: there is one as long as somebody has it. Order, budget and
  /// spin are the sharer's, the same each time; InvalidArgument if the set has others of the other
  /// options; SystemError. Everything is allocated and loaded here.
  static StatusOr<std::shared_ptr<ResidentSet>> of(const void *sharer, const SetOptions &options);

  uint32_t numExecutors() const { return options.numExecutors; }
  /// By kernelFor().
  ResidentDaemon &daemon(uint32_t kernel) { return *daemons[kernel]; }

private:
  explicit ResidentSet(const SetOptions &options) : options(options) {}

  const SetOptions options;
  std::array<std::unique_ptr<ResidentDaemon>, kNumKernels> daemons;
};

} // namespace occl::cuda::resident
