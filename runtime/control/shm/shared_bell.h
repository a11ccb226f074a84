// A device's doorbell, in memory of its own: one word that the ranks of every communicator of the
// device map and ring, so that an executor sleeps on one word whatever it waits for. Behind it is
// room for what the device has to tell them, whatever communicators they share.
#pragma once

#include "runtime/base/largest_page.h"
#include "runtime/base/status.h"
#include "runtime/control/shm/mapping.h"
#include "runtime/sync/doorbell.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace occl::bootstrap {

/// Owns the memory, or one mapping of it. The bell stays good for whoever still holds a mapping
/// when its device is gone: ringing it then wakes nobody. Thread safety: that of Doorbell.
class SharedBell {
public:
  /// For a device whose peers are all in this process.
  static StatusOr<std::shared_ptr<SharedBell>> makePrivate();
  /// For a device whose peers may be other processes: they map it through descriptor().
  static StatusOr<std::shared_ptr<SharedBell>> makeShared();
  /// Maps what makeShared() has made; `path` leads to the descriptor, `what` names the bell in
  /// errors.
  static StatusOr<std::shared_ptr<SharedBell>> open(const std::string &path,
                                                    const std::string &what);

  Doorbell &bell() const { return *reinterpret_cast<Doorbell *>(memory.get().data()); }
  /// Memory beside the bell, zero at first: aligned to pages, not touched until used. What it holds
  /// is up to who has the device; other processes map it for reading only.
  static constexpr uint64_t kNoticeBytes = 65536;
  std::byte *notices() const { return memory.get().data() + kBellBytes; }
  /// -1 if it is private or opened.
  int descriptor() const { return file.get(); }

private:
  static constexpr uint64_t kBellBytes = kLargestPage; // which all write
  static constexpr uint64_t kBytes = kBellBytes + kNoticeBytes;

  SharedBell(Descriptor file, Mapping memory) : file(std::move(file)), memory(std::move(memory)) {}

  Descriptor file;
  Mapping memory;
};

} // namespace occl::bootstrap
