#include "runtime/daemon/core.h"

#include "runtime/scheduler/calibration.h"

#include <thread>
#include <utility>

namespace occl::daemon {

namespace {

/// With more ranks than processors the peer that is waited for most likely does not run, and
/// polling keeps it from it: one look, then the next task or the processor to somebody else.
scheduler::BudgetLimits limitsFor(const Options &options, uint32_t numRanks) {
  auto limits = scheduler::budgetLimits(scheduler::flagRoundTrip(), options.spin);
  if (options.spin.count() == 0 && numRanks > std::thread::hardware_concurrency())
    limits.cap = limits.floor = scheduler::Nanoseconds(0);
  return limits;
}

} // namespace

Core::Core(std::unique_ptr<Fabric> joined, const Options &options)
    : options(options), fabric(std::move(joined)), budget(limitsFor(options, fabric->numRanks())),
      board(order, options.preemption, options.maxInFlight), requests(options.maxInFlight),
      completions(options.maxInFlight) {}

void Core::finish(OpenInvocation &invocation, StatusCode result) {
  const Collective &collective = *invocation.collective;
  Completion completion{invocation.request, result, invocation.hasCallback};
  if (result == StatusCode::Success) {
    Stats::add(stats.completed, 1);
    Stats::add(stats.bytesSent, collective.bytesSent);
    Stats::add(stats.bytesReceived, collective.bytesReceived);
  } else {
    Stats::add(stats.failed, 1);
  }
  invocation.finished.store(true, std::memory_order_release); // from here on it is the admission's
  completions.push(completion); // as many slots as requests: never full
}

void Core::runCompletions() {
  bool any = false;
  while (auto completion = completions.pop()) {
    requests.complete(completion->request, completion->result);
    if (completion->hasCallback)
      openWithCallback.fetch_sub(1, std::memory_order_relaxed);
    open.fetch_sub(1, std::memory_order_release);
    any = true;
  }
  if (any)
    fabric->own().header().doorbell.ring(); // threads in wait()
}

void Core::settleFailure() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  board.stop();
  StatusCode code = fabric->failure().code();
  for (OpenInvocation *invocation : board.takeAll())
    finish(*invocation, code);
  runCompletions();
}

} // namespace occl::daemon
