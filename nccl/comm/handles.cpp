#include "nccl/comm/handles.h"

#include "nccl/base/per_process.h"

#include <algorithm>
#include <map>

namespace occl::nccl {

namespace {

/// Of all processes that this one was forked from, and of it, so that none is another's.
std::atomic<uintptr_t> next = 0;

struct Handles {
  const uintptr_t first = next; // earlier ones are of the process that this one was forked from
  std::mutex mutex;
  std::map<ncclComm_t, std::shared_ptr<Comm>> comms;
};

/// Communicators that a program leaks do not hold up its exit.
constinit PerProcess<Handles> handles;

// Like addresses that cannot be accessed, and unlike small numbers that a program stores there.
constexpr uintptr_t kFirst = 0x0cc1000000000, kStep = 16;

bool isBefore(ncclComm_t handle, const Handles &own) {
  const auto number = reinterpret_cast<uintptr_t>(handle);
  return number >= kFirst && number < kFirst + own.first * kStep;
}

Outcome lookUp(ncclComm_t handle, bool take, std::shared_ptr<Comm> &comm) {
  if (!handle)
    return invalidArgument("comm must not be NULL");
  Handles &own = handles.get();
  if (isBefore(handle, own))
    return invalidUsage("comm belongs to the process that this one was forked from");
  std::lock_guard lock(own.mutex);
  auto found = own.comms.find(handle);
  if (found == own.comms.end())
    return invalidArgument("comm is no communicator, or was destroyed or aborted");
  comm = found->second;
  if (take)
    own.comms.erase(found);
  return {};
}

} // namespace

ncclComm_t addHandle(std::shared_ptr<Comm> comm) {
  Handles &own = handles.get();
  std::lock_guard lock(own.mutex);
  auto handle = reinterpret_cast<ncclComm_t>(kFirst + next++ * kStep);
  own.comms.emplace(handle, std::move(comm));
  return handle;
}

Outcome find(ncclComm_t handle, std::shared_ptr<Comm> &comm) { return lookUp(handle, false, comm); }

Outcome take(ncclComm_t handle, std::shared_ptr<Comm> &comm) { return lookUp(handle, true, comm); }

bool isAnyLeftOn(int device) {
  Handles &own = handles.get();
  std::lock_guard lock(own.mutex);
  return std::ranges::any_of(own.comms,
                             [&](const auto &entry) { return entry.second->device == device; });
}

bool isOfParent(ncclComm_t handle) { return isBefore(handle, handles.get()); }

} // namespace occl::nccl
