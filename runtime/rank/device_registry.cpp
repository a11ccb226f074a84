// The process' host scheduler: made with its first communicator, shared by the others.
#include "runtime/rank/device_registry.h"

#include "runtime/base/process_identity.h"
#include "runtime/sync/mutex.h"

#include <mutex>
#include <set>
#include <utility>

namespace occl::daemon {

namespace {

/// What the threads of this process know of its device.
struct Registry {
  Mutex mutex; // guards all below
  std::set<std::string> forming;
  std::weak_ptr<Device> device;
};

Registry &registry() {
  static constinit PerProcess<Registry> instance;
  return instance.get();
}

template <class T>
Status check(const char *setting, const std::optional<T> &requested, const T &running) {
  // A setting that is not given takes what runs.
  if (!requested || *requested == running)
    return {};
  return {StatusCode::InvalidArgument,
          std::string("config->") + setting +
              " differs from what the device runs with, whose executors all its communicators "
              "share. Leave it 0, or destroy the others first"};
}

DeviceOptions optionsFrom(const DeviceRequest &request) {
  DeviceOptions options;
  options.preemption = request.preemption.value_or(options.preemption);
  options.workers = request.workers.value_or(options.workers);
  options.spin = request.spin.value_or(options.spin);
  options.order = request.order.value_or(options.order);
  options.budget = request.budget;
  return options;
}

} // namespace

Status checkSettings(const DeviceRequest &request, const Device &device) {
  // Executors run already, with settings that cannot change under other communicators.
  const DeviceOptions &running = device.options;
  Status status = check("preemption", request.preemption, running.preemption);
  if (status.ok())
    status = check("workers", request.workers, running.workers);
  if (status.ok())
    status = check("spinMicroseconds", request.spin, running.spin);
  if (status.ok())
    status = check("orderPolicy", request.order, running.order);
  if (status.ok() && request.budget)
    status = check<std::optional<scheduler::BudgetPolicy>>("budgetPolicy", request.budget,
                                                           running.budget);
  return status;
}

StatusOr<std::shared_ptr<Device>> makeDevice(const DeviceRequest &request, bool shared) {
  auto bell = shared ? bootstrap::SharedBell::makeShared() : bootstrap::SharedBell::makePrivate();
  if (!bell.ok())
    return bell.status();
  return Device::start(optionsFrom(request), std::move(*bell));
}

PlaceInProcess::PlaceInProcess(std::string name) : communicator(std::move(name)) {
  Registry &known = registry();
  std::lock_guard lock(known.mutex);
  // Of the threads that form one communicator only the first is on the process' scheduler.
  isFirst = known.forming.insert(communicator).second;
}

PlaceInProcess::~PlaceInProcess() {
  Registry &known = registry();
  std::lock_guard lock(known.mutex);
  if (isFirst)
    known.forming.erase(communicator);
}

StatusOr<std::shared_ptr<Device>> PlaceInProcess::device(const DeviceRequest &request) const {
  // Another thread of this process has the shared scheduler for this communicator.
  if (!isFirst)
    return makeDevice(request, true);
  Registry &known = registry();
  // The lock is held while the scheduler is made, so that two communicators do not make two.
  std::lock_guard lock(known.mutex);
  if (auto running = known.device.lock()) {
    Status fits = checkSettings(request, *running);
    if (!fits.ok())
      return fits;
    return running;
  }
  auto made = makeDevice(request, true);
  if (!made.ok())
    return made;
  // Weak: the scheduler goes with the last communicator that uses it.
  known.device = *made;
  return made;
}

} // namespace occl::daemon
