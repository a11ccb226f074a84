// The communicators of this process: an abort may come from any thread while one is destroyed.
#include "runtime/api/capi/live_handles.h"

#include "runtime/api/capi/handles.h"
#include "support/nvtx/ranges.h"

#include <mutex>
#include <utility>

namespace occl::communicator {

void LiveHandles::add(occlComm_t comm) {
  std::lock_guard lock(mutex);
  entries[comm] = {};
}

bool LiveHandles::hold(occlComm_t comm) {
  std::lock_guard lock(mutex);
  auto found = entries.find(comm);
  if (found == entries.end() || found->second.isLeaving)
    return false;
  // The handle stays valid until letGo().
  ++found->second.holders;
  return true;
}

void LiveHandles::letGo(occlComm_t comm) {
  std::lock_guard lock(mutex);
  // The last holder lets remove() go on.
  if (--entries[comm].holders == 0)
    released.notify_all();
}

void LiveHandles::remove(occlComm_t comm) {
  std::unique_lock lock(mutex);
  Entry &entry = entries[comm];
  // Refuse new holders, then wait for those that are there.
  entry.isLeaving = true;
  released.wait(lock, [&] { return entry.holders == 0; });
  entries.erase(comm);
}

LiveHandles &liveHandles() {
  // Not destroyed: a thread may abort while the program ends. None in a forked child.
  static constinit PerProcess<LiveHandles> handles;
  return handles.get();
}

} // namespace occl::communicator

occlComm::occlComm(std::unique_ptr<occl::daemon::Daemon> started, bool isFirst,
                   std::unique_ptr<occl::cuda::DeviceRank> onDevice)
    : category(occl::nvtx::addCategory("communicator", started->rank(), started->numRanks())),
      daemon(std::move(started)), gpu(std::move(onDevice)), watching(*this, isFirst) {
  occl::communicator::liveHandles().add(this);
}
