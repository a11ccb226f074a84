// Pinned pages of host memory, registered with CUDA once for all ranks of the process.
#include "runtime/cuda/device/host_pages.h"

#include "runtime/cuda/device/cuda_calls.h"
#include "runtime/sync/mutex.h"

#include <cuda_runtime.h>

#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <sys/mman.h>

namespace occl::cuda {

namespace {

/// By address, of this process.
struct Pinned {
  Mutex mutex; // guards `pages`
  ConditionVariable unpinned;
  /// All that are pinned: an entry goes once its pages are not any more.
  std::map<std::byte *, std::weak_ptr<HostPages>> pages;
};

Pinned &pinned() {
  // Never destroyed: threads may still be at work when the process ends.
  static Pinned &all = *new Pinned;
  return all;
}

} // namespace

StatusOr<std::shared_ptr<HostPages>> HostPages::pin(std::span<std::byte> pages) {
  // Destroyed without the lock, if it comes to nothing.
  const std::shared_ptr<HostPages> made(new HostPages(pages));
  // CUDA takes a page once, so the ranks of a process share its registration. Nobody may have the
  // pages any more though CUDA still does: then its end is waited for.
  std::unique_lock lock(pinned().mutex);
  std::shared_ptr<HostPages> shared;
  pinned().unpinned.wait(lock, [&] {
    const auto known = pinned().pages.find(pages.data());
    return known == pinned().pages.end() || (shared = known->second.lock()) != nullptr;
  });
  if (shared)
    return shared;
  const auto entry = pinned().pages.try_emplace(pages.data()).first;
  Status status = toStatus(cudaHostRegister(pages.data(), pages.size(),
                                            cudaHostRegisterPortable | cudaHostRegisterMapped),
                           ("pinning " + std::to_string(pages.size() >> 20) +
                            " MiB of host memory, through which ranks exchange data (a smaller "
                            "arenaBytes takes less)")
                               .c_str());
  if (!status.ok()) {
    pinned().pages.erase(entry);
    return status;
  }
  made->isPinned = true;
  // Without a copy in children, pages are never copied on write, away from those that the device
  // knows.
  madvise(pages.data(), pages.size(), MADV_DONTFORK);
  entry->second = made;
  return made;
}

HostPages::~HostPages() {
  if (!isPinned)
    return;
  // Without the lock: CUDA may wait for the device here, and others pin pages meanwhile.
  if (!isLeft) {
    cudaHostUnregister(first);
    madvise(first, size, MADV_DOFORK);
  }
  std::lock_guard lock(pinned().mutex);
  pinned().pages.erase(reinterpret_cast<std::byte *>(first));
  pinned().unpinned.notify_all();
}

StatusOr<char *> HostPages::onDevice() const {
  void *mapped = nullptr;
  Status status =
      toStatus(cudaHostGetDevicePointer(&mapped, first, 0), "mapping host memory on a device");
  if (!status.ok())
    return status;
  return static_cast<char *>(mapped);
}

void storeWords(char *to, const void *from, uint64_t bytes) {
  auto *words = reinterpret_cast<uint64_t *>(to);
  for (uint64_t at = 0; at < bytes; at += sizeof(uint64_t)) {
    uint64_t value = 0;
    std::memcpy(&value, static_cast<const char *>(from) + at, sizeof value);
    storeShared(&words[at / sizeof value], value, std::memory_order_release);
  }
}

void loadWords(void *to, const char *from, uint64_t bytes) {
  const auto *words = reinterpret_cast<const uint64_t *>(from);
  for (uint64_t at = 0; at < bytes; at += sizeof(uint64_t)) {
    const uint64_t value = loadShared(&words[at / sizeof value], std::memory_order_acquire);
    std::memcpy(static_cast<char *>(to) + at, &value, sizeof value);
  }
}

} // namespace occl::cuda
