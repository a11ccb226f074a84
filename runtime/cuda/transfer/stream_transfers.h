// A rank's transfers as work of streams: docs/decisions/gpu/device-transfers.md.
#pragma once

#include "runtime/base/status.h"
#include "runtime/control/fabric.h"
#include "runtime/cuda/device_rank.h"
#include "runtime/cuda/memory/device_memory.h"
#include "runtime/cuda/memory/later_memory.h"
#include "runtime/cuda/transfer/group_layout.h"
#include "runtime/cuda/transfer/part_lists.h"
#include "runtime/cuda/watch/held_launch.h"
#include "runtime/cuda/watch/held_streams.h"
#include "runtime/cuda/watch/host_watch.h"
#include "runtime/rank/transfers.h"
#include "runtime/sync/atomic.h"
#include "runtime/sync/mutex.h"

#include <cuda_runtime.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace occl::cuda {

/// Thread safety: any.
class StreamTransfers {
public:
  /// All outlive it. Takes pinned memory and loads the kernel. later: has the slots, or null.
  /// SystemError.
  static StatusOr<std::unique_ptr<StreamTransfers>>
  make(daemon::Fabric &fabric, DeviceMemory &memory, LaterMemory *later, const PairGeometry &pairs,
       const HostWatch &watch, std::chrono::milliseconds timeout);
  ~StreamTransfers();
  /// Something of this rank may still be executed: what kernels have of it is never freed.
  void abandon();

  /// What a group has of a rank: one transfer or more, and streams, each once.
  struct Request {
    StreamTransfers *of;
    std::span<const daemon::Transfer> transfers;
    std::vector<cudaStream_t> streams;
  };
  /// A group, of one rank or several: behind what the streams have, in all of which what follows
  /// waits for its end. Either all streams of a rank are captured, in one capture, or none is.
  /// Of a rank that has failed nothing is done, and the others' transfers are in their streams,
  /// unless they are refused; a refusal, or else the first error is returned. The first captured
  /// call waits for those before to end, 5 s at most, and other threads' calls of the rank
  /// meanwhile for it.
  static StreamedTransfers run(std::span<const Request> requests);

  /// Whether nothing of them is in flight that the host or the device knows of.
  StatusOr<bool> isOver();
  /// The same, but false at once while another thread makes a call.
  StatusOr<bool> isOverNow();
  /// After which a kernel that waits gives up; kNoDeadline: never.
  std::chrono::milliseconds longestTimeout() const { return timeout; }
  /// Of a kernel of transfers that gave up.
  std::string describe(const GivingUp &where) const;

private:
  struct Event {
    ~Event();
    cudaEvent_t event = nullptr;
  };
  /// What comes after the last kernel of a direction has to know of it.
  struct Turn {
    uint64_t numTransfers = 0; // so far, as long as nothing is captured
    unsigned long long stream = 0;
    std::shared_ptr<Event> behind; // null: none was recorded
    bool isUsed = false;
    // The same of the last one that was captured.
    unsigned long long capture = 0, capturedStream = 0;
    std::shared_ptr<Event> capturedBehind;
  };
  /// A stream of this rank's own, in the place of one that other ranks have in the same group.
  struct Apart {
    cudaStream_t stream;
    unsigned long long insteadOf; // see streamNumber()
    unsigned long long capture;   // 0: of eager calls
  };
  struct Prepared;

  StreamTransfers(daemon::Fabric &fabric, DeviceMemory &memory, LaterMemory *later,
                  const PairGeometry &pairs, const HostWatch &watch,
                  std::chrono::milliseconds timeout)
      : fabric(fabric), memory(memory), later(later), pairs(pairs), watch(watch), timeout(timeout),
        held(heldStreamsOn(memory.device())) {}
  Status prepare(const Request &request, Prepared &prepared) const;
  StatusOr<GroupLayout> layoutOf(std::span<const daemon::Transfer> transfers,
                                 Prepared &prepared) const;
  static StreamedTransfers enqueue(std::span<Prepared> all);
  Status check(const daemon::Transfer &transfer, bool isCaptured) const;
  Status takeSlots(const GroupLayout &layout) const;
  Status fill(Prepared &prepared, const GroupLayout &layout) const;
  Status awaitGraphsTurn(Prepared &prepared);
  Status begin(Prepared &prepared);
  Status launch(Prepared &prepared);
  Status end(Prepared &prepared);
  Status standApart(Prepared &prepared);
  Status hold(Prepared &prepared);
  Status takeTurns(Prepared &prepared);
  Status awaitNumbered();
  StatusOr<std::vector<DirectionState>> states();
  StatusOr<bool> areNumbersReached();
  StatusOr<bool> areOver();
  static StatusOr<std::shared_ptr<Event>> record(cudaStream_t stream);
  Turn &turnOf(const TransferDirection &direction) {
    return turns[direction.peer * 2 + (direction.isSend ? 1 : 0)];
  }

  daemon::Fabric &fabric;
  DeviceMemory &memory;
  LaterMemory *const later;
  const PairGeometry pairs;
  const HostWatch &watch;
  const std::chrono::milliseconds timeout;
  HeldStreams &held;
  TransferMismatch *mismatch = nullptr; // pinned

  /// What the rank has sent to itself and not received, in eager groups that had one side alone.
  Atomic<int64_t> notReceived = 0;
  /// A captured group had.
  Atomic<bool> isApartFromItself = false;
  /// Held by whoever makes a call, inside calls of CUDA, too: kernels with a direction in common
  /// are enqueued in one order. Of several ranks they are taken by address.
  Mutex calls;
  std::array<Turn, kMostDirections> turns;
  PartListsInFlight lists; // of eager kernels
  std::vector<Apart> aparts;
  /// Eager calls have numbers that the host knows, as long as no replay takes some of its own.
  bool hasGraphs = false;
  /// A direction has been used in several streams: from then on kernels leave events behind.
  bool hasStreams = false;
};

} // namespace occl::cuda
