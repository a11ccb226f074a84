// Waits for those who have a communicator, and for what is freed of it.
#include "nccl/comm/ending.h"

#include "nccl/base/at_exit.h"
#include "nccl/base/live_counts.h"
#include "nccl/base/per_process.h"
#include "nccl/base/threads.h"
#include "nccl/calls/group.h"
#include "nccl/comm/handles.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

namespace occl::nccl {

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

/// For ranks to come together; and for a thread that lets go of what has connected.
constexpr std::chrono::milliseconds kPatience = 3s, kPatienceAgain = 100ms, kLettingGo = 10ms;

/// Until nobody has it any more but the caller, and a group in so many places.
void awaitOthersOf(const std::shared_ptr<Comm> &last, size_t inGroups, Clock::time_point until) {
  while (static_cast<size_t>(last.use_count()) > 1 + inGroups && Clock::now() < until)
    std::this_thread::sleep_for(20us);
}

/// Communicators that end on threads of their own, by device.
constinit PerProcess<LiveCounts<int>> endings;

/// Counted from its making to its end.
class Ending {
public:
  explicit Ending(int device) : device(device) { endings.get().add(device); }
  ~Ending() { endings.get().remove(device); }
  Ending(const Ending &) = delete;
  Ending &operator=(const Ending &) = delete;

private:
  const int device;
};

} // namespace

void endHere(std::shared_ptr<Comm> last) {
  // Where one was waited for in vain others are likely to be, too: a program that gives up many
  // does not wait for each.
  static std::atomic<bool> wasInVain = false;
  const bool isConnecting = last->isConnecting();
  const auto patience = !isConnecting ? kLettingGo : wasInVain.load() ? kPatienceAgain : kPatience;
  const auto until = Clock::now() + patience;
  if (isConnecting)
    wasInVain = !last->awaitConnected(until);
  awaitOthersOf(last, placesInGroup(last), std::max(until, Clock::now() + kLettingGo));
  last.reset();
}

void endApart(std::shared_ptr<Comm> last) {
  // What frees it is given two seconds by the device, and the exit of the process waits for that.
  static constexpr auto kOfDevice = 3s, kAtExit = 5s, kToLetGo = 1s;
  const int device = last->device;
  const size_t inGroups = placesInGroup(last);
  auto holds = std::make_unique<HoldsExit>(kAtExit);
  auto counted = std::make_unique<Ending>(device);
  startThread([last = std::move(last), inGroups, holds = std::move(holds),
               counted = std::move(counted)]() mutable {
    awaitOthersOf(last, inGroups, Clock::now() + kToLetGo);
    last.reset();
    counted.reset();
    holds.reset();
  });
  // Kernels of others on the device may be what it waits for.
  if (isAnyLeftOn(device))
    return;
  auto &all = endings.get();
  std::unique_lock lock(all.mutex);
  all.changed.wait_for(lock, kOfDevice, [&] { return !all.numbers.contains(device); });
}

} // namespace occl::nccl
