// What a rank of a communicator with devices tells the others through shared host memory. It lies
// in the arena of the rank's segment, and is zero at first.
#pragma once

#include "runtime/cuda/device/peer_paths.h"
#include "runtime/sync/atomic.h"

#include <cstdint>

namespace occl::cuda {

/// A rank's arena on its device, as others map it.
struct DeviceCard {
  static constexpr uint32_t kHandleBytes = 64;

  enum State : uint32_t { Missing = 0, Ready = 1, Failed = 2 };

  /// The rest is written once, before it is Ready.
  Atomic<uint32_t> state;
  int32_t device; // as its process numbers them
  uint64_t address;
  uint64_t bytes, arenaBytes;
  char handle[kHandleBytes]; // for other processes
  PeerPaths paths;
  /// The rank no longer maps the arenas of the others.
  Atomic<uint32_t> hasClosed;
};

struct ControlBlock {
  DeviceCard card;
  /// Thread blocks of each of the rank's persistent kernels; from before the ranks meet, connected.
  Atomic<uint32_t> executors;
};

} // namespace occl::cuda
