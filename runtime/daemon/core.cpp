#include "runtime/daemon/core.h"

#include "runtime/base/atomic.h"

#include <utility>

namespace occl::daemon {

Core::Core(std::shared_ptr<Device> device, std::unique_ptr<Fabric> joined, const Options &options)
    : options(options), device(std::move(device)), fabric(std::move(joined)),
      place(options.maxInFlight, stats), requests(options.maxInFlight),
      completions(options.maxInFlight) {}

void Core::countOpen(bool hasCallback) {
  device->open.fetch_add(1, std::memory_order_relaxed);
  if (hasCallback)
    device->openWithCallback.fetch_add(1, std::memory_order_relaxed);
  Stats::addLocked(stats.submitted, 1);
}

void Core::finish(OpenInvocation &invocation, StatusCode result) {
  Completion completion{invocation.request, result, invocation.hasCallback};
  invocation.finished.store(true, std::memory_order_release); // from here on it is the admission's
  completions.push(completion); // as many slots as requests: never full
}

void Core::runCompletions() {
  bool any = false;
  while (auto completion = completions.pop()) {
    requests.complete(completion->request, completion->result);
    if (completion->hasCallback)
      device->openWithCallback.fetch_sub(1, std::memory_order_relaxed);
    device->open.fetch_sub(1, std::memory_order_release);
    ended.fetch_add(1, std::memory_order_release);
    any = true;
  }
  if (any)
    device->bell.ring(); // threads in wait()
}

void Core::settleFailure() {
  threadFence(std::memory_order_seq_cst);
  StatusCode code = fabric->failure().code();
  for (OpenInvocation *invocation : device->board.abandon(place))
    finish(*invocation, code);
  runCompletions();
}

} // namespace occl::daemon
