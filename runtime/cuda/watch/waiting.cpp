#include "runtime/cuda/watch/waiting.h"

#include "runtime/sync/atomic.h"

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <string_view>

namespace occl::cuda {

namespace {

/// Nanoseconds. A kernel that waits says so more often than this.
constexpr uint64_t kRecent = 50'000'000;
constexpr uint32_t kDefaultConnections = 8, kMostConnections = 32;

uint64_t lastWait(const HostWords &words, uint32_t place) {
  return loadShared(&words.waiting[place], std::memory_order_relaxed);
}

} // namespace

void WaitingOnDevices::add(int device, const HostWords &words) {
  std::lock_guard lock(mutex);
  ranks.emplace_back(device, &words);
}

void WaitingOnDevices::remove(const HostWords &words) {
  std::lock_guard lock(mutex);
  std::erase_if(ranks, [&](const auto &rank) { return rank.second == &words; });
}

void WaitingOnDevices::setHeld(int device, const void *who, uint32_t streams) {
  std::lock_guard lock(mutex);
  if (streams != 0)
    held[{device, who}] = streams;
  else
    held.erase({device, who});
}

uint32_t WaitingOnDevices::count(int device) {
  std::lock_guard lock(mutex);
  uint32_t streams = 0;
  for (const auto &[where, number] : held)
    streams += where.first == device ? number : 0;
  std::vector<uint64_t> times;
  for (const auto &[where, words] : ranks)
    for (uint32_t place = 0; where == device && place < kMaxShapes; ++place)
      if (uint64_t time = lastWait(*words, place); time != 0)
        times.push_back(time);
  const uint64_t latest = times.empty() ? 0 : *std::ranges::max_element(times);
  return streams + static_cast<uint32_t>(std::ranges::count_if(
                       times, [&](uint64_t time) { return latest - time <= kRecent; }));
}

WaitingOnDevices &waitingOnDevices() {
  static WaitingOnDevices all;
  return all;
}

uint32_t connectionsFrom(const char *value) {
  char *end = nullptr;
  long given = value ? std::strtol(value, &end, 10) : 0;
  if (!value || end == value || given < 1)
    return kDefaultConnections;
  return static_cast<uint32_t>(std::min<long>(given, kMostConnections));
}

std::string describeLaunchBlocking(const char *value) {
  if (!value || std::strtol(value, nullptr, 10) == 0)
    return "";
  return "; CUDA_LAUNCH_BLOCKING is set: each launch waits until its kernel has ended, so a thread "
         "can start nothing that a kernel of another rank waits for. Enqueue collectives in the "
         "same order on all ranks, or unset it";
}

std::string describeLazyLoading(const char *value) {
  if (value && std::string_view(value) == "EAGER")
    return "";
  return "; CUDA_MODULE_LOADING is not EAGER: the first launch of a kernel can wait for those that "
         "run, and what is launched after it for both. Launch each kernel once before, or set it";
}

std::string describeConnections(int device, uint32_t waiting, uint32_t connections) {
  if (waiting < connections)
    return "";
  return "; " + std::to_string(waiting) + " collectives of this process wait on device " +
         std::to_string(device) + ", and CUDA_DEVICE_MAX_CONNECTIONS is " +
         std::to_string(connections) +
         ": when so many streams have work behind one that waits, nothing starts in other streams. "
         "Enqueue collectives in the same order on all ranks, or in fewer streams, or set the "
         "variable higher (at most " +
         std::to_string(kMostConnections) + ") before CUDA starts";
}

} // namespace occl::cuda
