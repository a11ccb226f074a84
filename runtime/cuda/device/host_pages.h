// Pages of host memory that the devices of this process access, where devices do not access each
// other's.
#pragma once

#include "runtime/base/status.h"
#include "runtime/sync/atomic.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace occl::cuda {

/// Pinned. Ranks of this process that map the same pages share it, as CUDA takes a page once.
/// Children that fork() makes have none of it: else a page that this process writes afterwards would
/// be another one than the device knows.
class HostPages {
public:
  /// Some device is current; the pages stay mapped until the result is gone. SystemError.
  static StatusOr<std::shared_ptr<HostPages>> pin(std::span<std::byte> pages);
  ~HostPages();
  HostPages(const HostPages &) = delete;
  HostPages &operator=(const HostPages &) = delete;

  char *begin() const { return first; }
  uint64_t bytes() const { return size; }
  /// Where the current device has them. SystemError.
  StatusOr<char *> onDevice() const;
  /// Kernels may still access them: they stay pinned until this process ends.
  void leave() { isLeft = true; }

private:
  explicit HostPages(std::span<std::byte> pages)
      : first(reinterpret_cast<char *>(pages.data())), size(pages.size()) {}

  char *const first;
  const uint64_t size;
  Atomic<bool> isPinned{false}, isLeft{false};
};

/// Words of 64 bits, at multiples of 8, that devices load and store meanwhile: what is stored here
/// is seen in order, and after all that was stored before.
void storeWords(char *to, const void *from, uint64_t bytes);
void loadWords(void *to, const char *from, uint64_t bytes);

} // namespace occl::cuda
