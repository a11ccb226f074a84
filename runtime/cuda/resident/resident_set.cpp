// Finds or makes the daemons of a device for those who share executors.
#include "runtime/cuda/resident/resident_set.h"

#include "runtime/sync/mutex.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace occl::cuda::resident {

namespace {

/// In strict mode, nanoseconds: executors look for so much longer for each open submission, that
/// all of its thread blocks may have their turn before they leave.
constexpr uint64_t kLookEach = 20'000;

struct Registry {
  Mutex mutex; // guards `sets`
  std::map<std::pair<const void *, int>, std::weak_ptr<ResidentSet>> sets;
};

Registry &registry() {
  // Never destroyed: threads may still be at work when the process ends.
  static Registry &instance = *new Registry;
  return instance;
}

} // namespace

StatusOr<std::shared_ptr<ResidentSet>> ResidentSet::of(const void *sharer,
                                                       const SetOptions &requested) {
  Registry &known = registry();
  std::lock_guard lock(known.mutex);
  std::erase_if(known.sets, [](const auto &entry) { return entry.second.expired(); });
  std::weak_ptr<ResidentSet> &place = known.sets[{sharer, requested.device}];
  // One set for all that share executors; other options would be silently ignored.
  if (auto running = place.lock()) {
    if ((requested.numExecutors != 0 && running->options.numExecutors != requested.numExecutors) ||
        running->options.preemption != requested.preemption ||
        (requested.isStrict && running->options.isStrict != requested.isStrict))
      return Status(StatusCode::InvalidArgument,
                    "config->workers, config->preemption or config->strict differs from what the "
                    "device's resident daemon runs with (" +
                        std::to_string(running->options.numExecutors) +
                        " thread blocks), which all communicators share. Use the same, or destroy "
                        "the others first");
    return running;
  }
  // The first one decides. One daemon for each kernel, all with the same settings.
  SetOptions options = requested;
  if (options.numExecutors == 0)
    options.numExecutors = kDefaultExecutors;
  options.isStrict = requested.isStrict.value_or(false);
  std::shared_ptr<ResidentSet> made(new ResidentSet(options));
  for (uint32_t k = 0; k < kNumKernels; ++k) {
    DaemonOptions daemon;
    daemon.device = options.device;
    daemon.kernel = &kernelAt(k);
    daemon.settings.numExecutors = options.numExecutors;
    daemon.settings.preemption = options.preemption;
    daemon.settings.order = options.order;
    daemon.settings.budget = options.budget.value_or(daemon.settings.budget);
    if (options.spin.count() != 0) {
      scheduler::BudgetLimits &limits = daemon.settings.budgetLimits;
      limits.cap = static_cast<uint64_t>(options.spin.count());
      limits.floor = std::min(limits.floor, limits.cap);
    }
    daemon.isStrict = *options.isStrict;
    if (daemon.isStrict) {
      daemon.settings.stuckLimit = std::chrono::nanoseconds(DaemonOptions::kLook).count();
      daemon.settings.stuckLimitEach = kLookEach;
    }
    auto started = ResidentDaemon::make(daemon);
    if (!started.ok())
      return started.status();
    made->daemons[k] = std::move(*started);
  }
  place = made;
  return made;
}

} // namespace occl::cuda::resident
