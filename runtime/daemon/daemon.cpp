#include "runtime/daemon/daemon.h"

#include <algorithm>
#include <utility>

namespace occl::daemon {

StatusOr<std::unique_ptr<Daemon>> Daemon::start(std::unique_ptr<Fabric> fabric,
                                                const Options &options) {
  std::unique_ptr<Daemon> daemon(new Daemon(std::move(fabric), options));
  for (uint32_t w = 0; w < options.workers; ++w) {
    auto worker = Worker::start(daemon->core, daemon->watchdog);
    if (!worker.ok())
      return worker.status();
    daemon->workers.push_back(std::move(*worker));
  }
  return daemon;
}

Daemon::Daemon(std::unique_ptr<Fabric> fabric, const Options &options)
    : core(std::move(fabric), options), admission(core),
      watchdog(core, [this](uint64_t id) { return admission.nameOf(id); }) {}

Daemon::~Daemon() {
  Executor executor(core, watchdog);
  core.helpers.fetch_add(1, std::memory_order_seq_cst);
  executor.runUntil([&] { return core.open.load(std::memory_order_acquire) == 0; });
  core.helpers.fetch_sub(1, std::memory_order_seq_cst);
  core.stopping.store(true, std::memory_order_seq_cst);
  workers.clear();
  core.fabric->leave();
}

Status Daemon::add(CollectiveSpec spec) {
  return core.fabric->failed() ? failure() : admission.add(std::move(spec));
}

Status Daemon::remove(uint64_t id) {
  return core.fabric->failed() ? failure() : admission.remove(id);
}

StatusOr<RequestId> Daemon::submit(uint64_t id, const void *input, void *output,
                                   const Callback &callback) {
  if (core.fabric->failed())
    return failure();
  auto request = admission.submit(id, input, output, callback);
  if (!request.ok())
    return request;
  // The admission has ended with a fence: what it published and what is read here are in order.
  if (core.fabric->failed())
    core.settleFailure();
  wakeFor(callback);
  return request;
}

void Daemon::wakeFor(const Callback &callback) {
  core.fabric->own()
      .header()
      .doorbell.ringFenced(); // executors of this rank that are stuck with something else
  if (core.helpers.load(std::memory_order_relaxed) != 0)
    return;
  if (callback && core.lingering.load(std::memory_order_relaxed) != 0)
    core.workBell.ringAll();
  else
    core.workBell.ringFenced();
}

void Daemon::leaveWait() {
  core.helpers.fetch_sub(1, std::memory_order_seq_cst);
  if (core.open.load(std::memory_order_relaxed) == 0 ||
      core.helpers.load(std::memory_order_relaxed) != 0)
    return;
  // Whatever else is open is the workers' now.
  if (core.openWithCallback.load(std::memory_order_relaxed) != 0)
    core.workBell.ringAll();
  else
    core.workBell.ring();
}

Status Daemon::wait(RequestId request) {
  switch (core.requests.phase(request)) {
  case RequestTable::Phase::Never:
    return {StatusCode::InvalidArgument, "there is no request " + std::to_string(request)};
  case RequestTable::Phase::InFlight: {
    core.helpers.fetch_add(1, std::memory_order_seq_cst);
    Executor executor(core, watchdog);
    executor.runUntil(
        [&] { return core.requests.phase(request) != RequestTable::Phase::InFlight; });
    leaveWait();
    break;
  }
  case RequestTable::Phase::Complete:
  case RequestTable::Phase::Forgotten:
    break;
  }
  return take(request);
}

Status Daemon::take(RequestId request) {
  auto result = core.requests.take(request);
  if (result == StatusCode::Success)
    return {};
  // An invocation fails only together with its communicator; so does one whose result somebody else
  // has taken.
  return failure();
}

Status Daemon::test(RequestId request) {
  using Phase = RequestTable::Phase;
  if (core.requests.phase(request) == Phase::InFlight)
    Executor(core, watchdog).pass();
  switch (core.requests.phase(request)) {
  case Phase::Never:
    return {StatusCode::InvalidArgument, "there is no request " + std::to_string(request)};
  case Phase::InFlight:
    watchdog.tick();
    return {StatusCode::InProgress, "request " + std::to_string(request) + " is in flight"};
  case Phase::Complete:
  case Phase::Forgotten:
    break;
  }
  return take(request);
}

void Daemon::fail(const Status &cause) {
  core.fabric->fail(cause);
  core.settleFailure();
}

} // namespace occl::daemon
