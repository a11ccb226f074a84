// The calls of a rank that wait for room, for reports.
#include "runtime/sched/room_waits.h"

#include <algorithm>
#include <mutex>

namespace occl::daemon {

void RoomWaits::set(const void *call, const std::string &text) {
  std::lock_guard lock(mutex);
  auto found = std::ranges::find(waits, call, &Wait::call);
  if (found == waits.end())
    waits.push_back({call, text});
  else
    found->text = text;
}

void RoomWaits::remove(const void *call) {
  std::lock_guard lock(mutex);
  std::erase_if(waits, [&](const Wait &wait) { return wait.call == call; });
}

std::string RoomWaits::describe() {
  std::lock_guard lock(mutex);
  return waits.empty() ? "" : waits.front().text;
}

} // namespace occl::daemon
