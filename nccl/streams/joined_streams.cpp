// Events order the streams. CUDA takes an event for the streams of its context alone, so that of
// the communicator's device is current meanwhile.
#include "nccl/streams/joined_streams.h"

#include <algorithm>

namespace occl::nccl {

namespace {

/// A thread may be on another device, and in a capture that forbids what concerns nobody's streams.
class OnDevice {
public:
  OnDevice(const CudaDriver &driver, int device) : driver(driver) {
    // While a stream is captured, the strictest mode forbids calls that could wait for it, such as
    // those below; this thread's mode is relaxed meanwhile and put back at the end.
    driver.exchangeCaptureMode(&mode);
    int current = -1;
    entered = driver.call("cuCtxGetCurrent", [&] { return driver.currentContext(&before); });
    // If the communicator's device is current already, nothing is changed: that is nearly always
    // so.
    if (entered.ok() && before)
      entered = driver.call("cuCtxGetDevice", [&] { return driver.currentDevice(&current); });
    if (!entered.ok() || current == device)
      return;
    // The primary context of the device is what the CUDA runtime uses; its streams belong to that.
    entered = driver.call("cuDeviceGet", [&] { return driver.deviceOf(&number, device); });
    void *context = nullptr;
    if (entered.ok())
      entered = driver.call("cuDevicePrimaryCtxRetain",
                            [&] { return driver.retainContext(&context, number); });
    hasChanged = entered.ok();
    if (entered.ok())
      entered = driver.call("cuCtxSetCurrent", [&] { return driver.setContext(context); });
  }
  ~OnDevice() {
    if (hasChanged) {
      driver.setContext(before);
      driver.releaseContext(number);
    }
    driver.exchangeCaptureMode(&mode);
  }
  OnDevice(const OnDevice &) = delete;
  OnDevice &operator=(const OnDevice &) = delete;

  const Outcome &outcome() const { return entered; }

private:
  const CudaDriver &driver;
  int mode = 2; // CU_STREAM_CAPTURE_MODE_RELAXED
  void *before = nullptr;
  int number = 0;
  bool hasChanged = false;
  Outcome entered;
};

/// In the order of the operations, each once.
// A vector and not a set, because the first stream has a meaning: it executes.
std::vector<cudaStream_t> streamsOf(const Batch &batch) {
  std::vector<cudaStream_t> used;
  for (const auto *operations : {&batch.collectives, &batch.transfers})
    for (const Operation &operation : *operations)
      if (std::ranges::find(used, operation.stream) == used.end())
        used.push_back(operation.stream);
  return used;
}

bool hasOneStream(const Batch &batch) {
  const auto isFirst = [&](const Operation &operation) {
    return operation.stream == batch.collectives.front().stream;
  };
  return std::ranges::all_of(batch.collectives, isFirst) &&
         std::ranges::all_of(batch.transfers, isFirst);
}

} // namespace

Outcome JoinedStreams::begin(Batch &batch, int ofDevice) {
  // NCCL lets calls of a group be in several streams; each stream then waits for all of it.
  if (batch.collectives.empty() || hasOneStream(batch))
    return {};
  std::vector<cudaStream_t> used = streamsOf(batch);
  device = ofDevice;
  first = used.front();
  used.erase(used.begin());
  // First everything waits for the streams' work so far, by events: no thread blocks, and captured
  // graphs get the same edges.
  if (Outcome outcome = order(used, {first}); !outcome.ok())
    return outcome;
  others = std::move(used);
  for (auto *operations : {&batch.collectives, &batch.transfers})
    for (Operation &operation : *operations)
      operation.stream = first;
  return {};
}

Outcome JoinedStreams::end() const { return others.empty() ? Outcome() : order({first}, others); }

/// What follows in the ones waits for what the others have now.
Outcome JoinedStreams::order(const std::vector<cudaStream_t> &before,
                             const std::vector<cudaStream_t> &after) const {
  // Events without times are cheaper, and nothing is measured with them.
  constexpr unsigned kDisableTiming = 2;
  const OnDevice on(driver, device);
  Outcome outcome = on.outcome();
  for (cudaStream_t stream : before) {
    void *event = nullptr;
    if (outcome.ok())
      outcome =
          driver.call("cuEventCreate", [&] { return driver.makeEvent(&event, kDisableTiming); });
    if (outcome.ok())
      outcome = driver.call("cuEventRecord", [&] { return driver.recordEvent(event, stream); });
    for (cudaStream_t waiting : after)
      if (outcome.ok())
        outcome =
            driver.call("cuStreamWaitEvent", [&] { return driver.awaitEvent(waiting, event, 0); });
    if (event)
      driver.destroyEvent(event); // it goes when its streams have come so far
  }
  return outcome;
}

} // namespace occl::nccl
