// Counts, over all communicators of the process, how many kernels and streams wait on a device.
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
  ranks.push_back({device, &words});
}

void WaitingOnDevices::remove(const HostWords &words) {
  std::lock_guard lock(mutex);
  std::erase_if(ranks, [&](const Rank &rank) { return rank.words == &words; });
}

void WaitingOnDevices::setWaiting(const HostWords &words, uint32_t calls) {
  std::lock_guard lock(mutex);
  for (Rank &rank : ranks)
    if (rank.words == &words)
      rank.waiting = calls;
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
  // Kernels, by the time at which each has last said that it waits.
  std::vector<uint64_t> times;
  for (const Rank &rank : ranks)
    for (uint32_t place = 0; rank.device == device && place < kMaxShapes; ++place)
      if (uint64_t time = lastWait(*rank.words, place); time != 0)
        times.push_back(time);
  // Device clocks cannot be compared with the host's: the latest word stands for the present.
  const uint64_t latest = times.empty() ? 0 : *std::ranges::max_element(times);
  return streams + static_cast<uint32_t>(std::ranges::count_if(
                       times, [&](uint64_t time) { return latest - time <= kRecent; }));
}

uint32_t WaitingOnDevices::waitingNow(int device) {
  std::lock_guard lock(mutex);
  uint32_t waiting = 0;
  for (const auto &[where, number] : held)
    waiting += where.first == device ? number : 0;
  for (const Rank &rank : ranks)
    waiting += rank.device == device ? rank.waiting : 0;
  return waiting;
}

uint32_t WaitingOnDevices::waitingNow(const HostWords &words) {
  std::lock_guard lock(mutex);
  for (const Rank &rank : ranks)
    if (rank.words == &words)
      return rank.waiting;
  return 0;
}

WaitingOnDevices &waitingOnDevices() {
  // Never destroyed: threads may still be at work when the process ends.
  static WaitingOnDevices &all = *new WaitingOnDevices;
  return all;
}

uint32_t connectionsFrom(const char *value) {
  // CUDA takes at most 32, and 8 if nothing or nonsense is set.
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

namespace {

/// "8 collectives ..."
std::string countAgainst(int device, uint32_t waiting, uint32_t connections) {
  return std::to_string(waiting) + " collectives of this process wait on device " +
         std::to_string(device) + ", and CUDA_DEVICE_MAX_CONNECTIONS is " +
         std::to_string(connections);
}

std::string whatToDoWithFewConnections() {
  return "Enqueue collectives in the same order on all ranks, or in fewer streams, or set the "
         "variable higher (at most " +
         std::to_string(kMostConnections) + ") before CUDA starts";
}

} // namespace

std::string describeConnections(int device, uint32_t waiting, uint32_t connections) {
  if (waiting < connections)
    return "";
  return "; " + countAgainst(device, waiting, connections) +
         ": when so many streams have work behind one that waits, nothing starts in other "
         "streams. " +
         whatToDoWithFewConnections();
}

Status checkConnections(int device, uint32_t waiting, uint32_t connections) {
  // With one connection all ranks keep one order anyway.
  if (connections == 1 || waiting + 1 < connections)
    return {};
  return {StatusCode::Again,
          countAgainst(device, waiting, connections) +
              ": a call in one more stream could leave no connection for what they wait for. Call "
              "again when one of them has ended. " +
              whatToDoWithFewConnections()};
}

} // namespace occl::cuda
