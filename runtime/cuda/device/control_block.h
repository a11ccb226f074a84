// What a rank of a communicator with devices tells the others through shared host memory. It lies
// in the arena of the rank's segment, and is zero at first.
#pragma once

#include "runtime/cuda/device/peer_paths.h"
#include "runtime/sync/atomic.h"

#include <array>
#include <cstdint>

namespace occl::cuda {

/// How others find memory of a rank's device.
struct SharedHandle {
  static constexpr uint32_t kBytes = 64;

  int32_t device;      // as its process numbers them
  uint64_t address;    // in its process
  char handle[kBytes]; // for other processes
};

/// Pieces of device memory that a rank may take when they are first needed: see LaterMemory.
enum class LaterPart : uint32_t {
  Lines,    // blocks of programs of LL128
  Messages, // the block of programs of Simple, and scratch
  Slots     // of transfers
};
inline constexpr uint32_t kNumLaterParts = 3;

struct LaterCard {
  /// DeviceCard::State; the handle is written once, before it is Ready, and neither that nor Failed
  /// changes any more.
  Atomic<uint32_t> state;
  SharedHandle handle;
  /// Of which ranks, as bits, the rank needs that part.
  Atomic<uint32_t> isWanted;
  /// It has mapped that of all ranks.
  Atomic<uint32_t> hasMapped;
};

/// A rank's arena on its device, as others map it.
struct DeviceCard {
  enum State : uint32_t { Missing = 0, Ready = 1, Failed = 2 };

  /// The rest is written once, before it is Ready.
  Atomic<uint32_t> state;
  SharedHandle handle;
  uint64_t bytes, arenaBytes;
  uint32_t isAsNeeded; // what larger calls need is taken when they come
  PeerPaths paths;
  std::array<LaterCard, kNumLaterParts> later; // by LaterPart
  /// The rank no longer maps the arenas of the others.
  Atomic<uint32_t> hasClosed;
};

struct ControlBlock {
  DeviceCard card;
  /// Thread blocks of each of the rank's persistent kernels; from before the ranks meet, connected.
  Atomic<uint32_t> executors;
};

} // namespace occl::cuda
