#include "group.h"

#include <c10/core/DeviceGuard.h>

#include <cstdio>
#include <thread>

#include "../signals.h"

namespace occl_torch {

namespace {

constexpr int kMaxDeviceRanks = 8;       // on devices
constexpr uint64_t kHeapBytes = 1 << 20; // nothing here is of occlMemAlloc

// The groups of the process, and the device that its first CUDA tensor was on.
std::mutex registryMutex;
std::vector<std::weak_ptr<DeviceGroup>> registry;
std::optional<c10::DeviceIndex> deviceOfProcess;

} // namespace

std::shared_ptr<DeviceGroup> DeviceGroup::make(int rank, int size, std::string name,
                                               uint32_t timeoutMs, std::string refused) {
  std::shared_ptr<DeviceGroup> group(
      new DeviceGroup(rank, size, std::move(name), timeoutMs, std::move(refused)));
  std::lock_guard<std::mutex> lock(registryMutex);
  registry.erase(std::remove_if(registry.begin(), registry.end(),
                                [](const auto &other) { return other.expired(); }),
                 registry.end());
  registry.push_back(group);
  if (deviceOfProcess)
    group->begin(*deviceOfProcess);
  return group;
}

// In the background, once.
void DeviceGroup::begin(c10::DeviceIndex device) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (device_ || closed_)
    return;
  device_ = c10::Device(c10::DeviceType::CUDA, device);
  if (!refused_.empty()) {
    whyNot_ = refused_;
    return;
  }
  if (size_ > kMaxDeviceRanks) {
    whyNot_ = "a process group of " + std::to_string(size_) +
              " ranks: CUDA tensors have groups "
              "of 1 to " +
              std::to_string(kMaxDeviceRanks) + " ranks";
    return;
  }
  std::thread([self = shared_from_this(), device] { self->join(device); }).detach();
}

void DeviceGroup::join(c10::DeviceIndex device) {
  std::shared_ptr<Communicator> comm;
  std::string why;
  try {
    occlConfig_t config = OCCL_CONFIG_INITIALIZER;
    config.timeoutMs = timeoutMs_;
    config.deviceKind = occlDeviceCuda;
    config.device = static_cast<uint32_t>(device);
    config.heapBytes = kHeapBytes;
    // The device can be idle while operations wait: else what CUDA does on an idle device alone, as
    // another group's memory, would wait for them, and their ranks perhaps for that group.
    config.strict = 1;
    comm = Communicator::join(rank_, size_, name_, config);
  } catch (const c10::Error &error) {
    why = error.what_without_backtrace();
  } catch (const std::exception &error) {
    why = error.what();
  }
  bool late = false;
  std::string reason;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    comm_ = comm;
    whyNot_ = why;
    late = closed_;
    reason = reason_;
  }
  joined_.notify_all();
  if (comm && late)
    comm->close();
  else if (comm && !reason.empty()) // abort() had nothing to abort, and others may wait for this
    comm->abort(reason);
  else if (comm)
    Helper::get().watch(weak_from_this());
}

void DeviceGroup::connect(c10::Device device, const char *operation) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (!device_) {
    lock.unlock();
    std::lock_guard<std::mutex> all(registryMutex);
    begin(device.index());
    if (!deviceOfProcess)
      deviceOfProcess = device.index();
    for (const auto &other : registry)
      if (auto group = other.lock())
        group->begin(*deviceOfProcess);
    lock.lock();
  }
  const std::string where = std::string("occl: ") + operation + ": ";
  if (device_ && *device_ != device)
    C10_THROW_ERROR(ValueError, where + "the tensor is on " + device.str() +
                                    ", and this process group is on " + device_->str() +
                                    ": a process uses one CUDA device, that of its first tensor");
  const auto isDecided = [this] {
    return comm_ || closed_ || !whyNot_.empty() || !reason_.empty();
  };
  while (!joined_.wait_for(lock, kSignalSlice, isDecided)) {
    lock.unlock();
    checkSignals();
    lock.lock();
  }
  if (!reason_.empty())
    C10_THROW_ERROR(DistBackendError, where + reason_);
  if (!comm_)
    C10_THROW_ERROR(DistBackendError, where + whyNot_);
  if (auto why = comm_->unusable(); !why.empty())
    C10_THROW_ERROR(DistBackendError, where + why);
}

void DeviceGroup::abort(const std::string &why) {
  std::shared_ptr<Communicator> comm;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (reason_.empty())
      reason_ = why;
    comm = comm_;
    told_ = true;
  }
  joined_.notify_all();
  if (comm)
    comm->abort(why);
}

void DeviceGroup::close() {
  tick();
  std::shared_ptr<Communicator> comm;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    closed_ = told_ = true;
    if (reason_.empty())
      reason_ = "the process group was destroyed";
    comm = comm_;
  }
  joined_.notify_all();
  if (comm)
    comm->close();
}

std::string DeviceGroup::whyFailed() {
  std::shared_ptr<Communicator> comm;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    comm = comm_;
  }
  return comm ? comm->whyFailed() : "";
}

// Streams go on after a failure, with outputs that are undefined: so it is said even if the
// program asks no work of the group any more.
unsigned DeviceGroup::tick() {
  constexpr unsigned kPeriod = 100; // milliseconds
  std::shared_ptr<Communicator> comm;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (told_)
      return 0;
    comm = comm_;
  }
  if (!comm || !comm->failed())
    return kPeriod;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (std::exchange(told_, true))
      return 0;
  }
  std::fprintf(stderr,
               "%s\noccl: rank %d: CUDA tensors that operations of this process group had not "
               "finished are undefined.\n",
               comm->describe("a process group has failed", occlAborted).c_str(), rank_);
  return 0;
}

c10::Stream DeviceGroup::streamFor(int purpose) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto found = streams_.find(purpose);
  if (found == streams_.end())
    found = streams_.emplace(purpose, ownStream(*device_)).first;
  return found->second;
}

void DeviceGroup::drainCurrentStream() {
  std::unique_lock<std::mutex> lock(mutex_);
  if (!device_ || !refused_.empty())
    return;
  const c10::Stream stream = currentStream(*device_);
  lock.unlock();
  TORCH_CHECK(!isCaptured(stream), "occl: barrier: the current stream is captured in a graph");
  // Asked rather than waited for: signals end this, too.
  const auto mark = markOf(stream);
  auto heard = std::chrono::steady_clock::now();
  while (!mark->query()) {
    std::this_thread::sleep_for(std::chrono::microseconds(20));
    if (std::chrono::steady_clock::now() - heard < kSignalSlice)
      continue;
    checkSignals();
    heard = std::chrono::steady_clock::now();
  }
  if (failed())
    std::rethrow_exception(comm_->failure("barrier", occlAborted));
}

} // namespace occl_torch
