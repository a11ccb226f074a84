// Finds devices that wait for each other in a cycle, also across communicators.
#include "runtime/observe/deadlock/device_cycle.h"

#include "runtime/observe/deadlock/deadlock.h"

#include <algorithm>

namespace occl::daemon {

namespace {

using transport::DeviceId;
using transport::DeviceWait;

/// By position; who is not among them moves.
WaitGraph graphOf(std::span<const DeviceWait> waits) {
  std::map<DeviceId, size_t> position;
  for (size_t i = 0; i < waits.size(); ++i)
    position[waits[i].device] = i;
  WaitGraph graph(waits.size());
  for (size_t i = 0; i < waits.size(); ++i)
    for (DeviceId other : waits[i].waitsFor) {
      auto found = position.find(other);
      graph[i].push_back(found == position.end() ? waits.size() : found->second);
    }
  return graph;
}

/// Those that can be reached from one of them.
std::vector<bool> reachable(const WaitGraph &graph, size_t from) {
  std::vector<bool> reached(graph.size(), false);
  std::vector<size_t> open{from};
  reached[from] = true;
  while (!open.empty()) {
    size_t i = open.back();
    open.pop_back();
    for (size_t next : graph[i])
      if (!reached[next]) {
        reached[next] = true;
        open.push_back(next);
      }
  }
  return reached;
}

} // namespace

void KnownDevices::hear(const DeviceWait &wait) {
  DeviceWait &known = devices[wait.device];
  if (known.device == 0 || known.saidAt < wait.saidAt)
    known = wait;
}

void KnownDevices::forgetBefore(uint64_t time) {
  std::erase_if(devices, [&](const auto &known) { return known.second.saidAt < time; });
}

std::vector<DeviceWait> KnownDevices::toTell(DeviceId own) const {
  std::vector<DeviceWait> told;
  for (const auto &[device, wait] : devices)
    if (device == own || !wait.waitsFor.empty())
      told.push_back(wait);
  // The board drops the last ones, so the own device comes first, then the latest.
  std::sort(told.begin(), told.end(), [&](const DeviceWait &left, const DeviceWait &right) {
    bool leftIsOwn = left.device == own, rightIsOwn = right.device == own;
    return leftIsOwn != rightIsOwn ? leftIsOwn : left.saidAt > right.saidAt;
  });
  return told;
}

std::vector<DeviceWait> KnownDevices::stuckWith(DeviceId device) const {
  std::vector<DeviceWait> waits;
  size_t own = devices.size();
  for (const auto &[id, wait] : devices) {
    if (id == device)
      own = waits.size();
    waits.push_back(wait);
  }
  WaitGraph graph = graphOf(waits);
  if (own == waits.size() || !findStuck(graph)[own])
    return {};
  // Who is stuck waits for none that is not, so all of these are.
  std::vector<bool> with = reachable(graph, own);
  std::vector<DeviceWait> stuck;
  for (size_t i = 0; i < waits.size(); ++i)
    if (with[i])
      stuck.push_back(std::move(waits[i]));
  return stuck;
}

std::vector<DeviceWait> cycleOf(std::span<const DeviceWait> stuck, DeviceId device) {
  auto own = std::find_if(stuck.begin(), stuck.end(),
                          [&](const DeviceWait &wait) { return wait.device == device; });
  if (own == stuck.end())
    return {};
  std::vector<DeviceWait> cycle;
  for (size_t i : followFirstWaits(graphOf(stuck), static_cast<size_t>(own - stuck.begin())))
    cycle.push_back(stuck[i]);
  // The lowest device comes first, so that all of them tell the same cycle.
  auto lowest = std::min_element(
      cycle.begin(), cycle.end(),
      [](const DeviceWait &left, const DeviceWait &right) { return left.device < right.device; });
  std::rotate(cycle.begin(), lowest, cycle.end());
  return cycle;
}

std::vector<DeviceWait> DeviceCycleDetector::update(std::span<const DeviceWait> stuck,
                                                    DeviceId device, uint64_t now) {
  std::vector<std::pair<DeviceId, uint64_t>> same;
  for (const DeviceWait &wait : stuck)
    same.emplace_back(wait.device, wait.since);
  if (same != seen) {
    // The waits are others, so all devices must look again.
    seen = std::move(same);
    seenAt = now;
    return {};
  }
  // Clocks of two processors differ by less.
  constexpr uint64_t kMargin = 100'000;
  bool haveLooked = std::all_of(stuck.begin(), stuck.end(), [&](const DeviceWait &wait) {
    return wait.lookedAt > seenAt + kMargin;
  });
  return haveLooked ? cycleOf(stuck, device) : std::vector<DeviceWait>{};
}

} // namespace occl::daemon
