#include "nccl/comm/busy.h"

#include "nccl/base/at_exit.h"
#include "nccl/base/threads.h"
#include "runtime/api/occl_insight.h"

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

namespace occl::nccl {

namespace {

using namespace std::chrono_literals;

struct Answer {
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<bool> isBusy;
};

bool isBusy(occlComm_t own) {
  int busy = 1;
  return occlCommIsBusy(own, &busy) != occlSuccess || busy != 0;
}

} // namespace

/// Kernels that others have on the device may hold up what it is asked: on a thread that is left to
/// itself then.
bool isBusyOnDevice(std::shared_ptr<Comm> comm, occlComm_t own) {
  constexpr auto kPatience = 500ms, kAtExit = 1000ms;
  auto answer = std::make_shared<Answer>();
  try {
    startThread([answer, comm = std::move(comm), own,
                 holds = std::make_unique<HoldsExit>(kAtExit)]() mutable {
      const bool busy = isBusy(own);
      comm.reset(); // who waits for the answer may have to be the last to have it
      {
        std::lock_guard lock(answer->mutex);
        answer->isBusy = busy;
        answer->changed.notify_all();
      }
      holds.reset();
    });
  } catch (const std::system_error &) {
    return true;
  }
  std::unique_lock lock(answer->mutex);
  answer->changed.wait_for(lock, kPatience, [&] { return answer->isBusy.has_value(); });
  return answer->isBusy.value_or(true);
}

void awaitIdle(occlComm_t own) {
  int busy = 1;
  while (occlCommIsBusy(own, &busy) == occlSuccess && busy != 0 && !*occlCommGetLastError(own))
    std::this_thread::sleep_for(1ms);
}

} // namespace occl::nccl
