// The partitioned sends and receives of a rank on its device:
// docs/decisions/gpu/partitioned.md.
#pragma once

#include "runtime/api/occl_device.cuh"
#include "runtime/control/fabric.h"
#include "runtime/cuda/device/arena_space.h"
#include "runtime/cuda/device_parts.h"
#include "runtime/cuda/memory/device_memory.h"
#include "runtime/cuda/partitioned/arrival_words.h"
#include "runtime/cuda/partitioned/mark_choice.h"
#include "runtime/cuda/partitioned/part_kernels.h"
#include "runtime/cuda/watch/held_launch.h"
#include "runtime/cuda/watch/held_streams.h"
#include "runtime/cuda/watch/host_watch.h"
#include "runtime/partitioned/matching.h"
#include "runtime/sync/atomic.h"
#include "runtime/sync/doorbell.h"
#include "runtime/sync/mutex.h"

#include <cuda_runtime.h>

#include <chrono>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace occl::cuda {

class CudaParts;

/// What the host and its device tell each other of a request, pinned.
struct PinnedWords : device::Peer {
  /// Of a send, by the device: the last epoch that occlPprepareOn has found started.
  uint64_t foundStarted;
};

class PairPart final : public DevicePart {
public:
  PairPart(CudaParts &owner, const partitioned::Terms &terms)
      : owner(owner), party{.isSend = terms.isSend,
                            .peer = terms.peer,
                            .tag = terms.tag,
                            .shape = terms.shape,
                            .reference = 0,
                            .bound = partitioned::Notices(terms.isSend ? 0 : 1)},
        choice(terms.shape) {}

  Status start(void *stream) override;
  Status mark(plan::Range range, void *stream) override;
  Status prepare(void *stream) override;
  Status wait(void *stream) override;
  void *state() override;
  Status release() override;

  CudaParts &owner;
  partitioned::Party party;
  device::State *onDevice = nullptr; // in the rank's arena
  PinnedWords *peer = nullptr;
  char *buffer = nullptr;              // of a send
  device::Cut cut{};                   // of a send
  uint32_t entry = 0;                  // of a send: in Sends
  bool mayBeInTable = false;           // likewise
  Atomic<uint64_t> waits{0};           // that were put into streams, captured or not
  Atomic<bool> hasCapturedWait{false}; // whose replays nobody counts
  Mutex choosing;
  MarkChoice choice; // under the lock
  // Under the owner's lock.
  bool isConnected = false, isFreedTold = false, lacksWords = false;
};

/// Thread safety: any; of a request as DevicePart says.
class CudaParts {
public:
  /// All outlive it; bell: of the host's executors.
  CudaParts(daemon::Fabric &fabric, DeviceMemory &memory, ArenaSpace &space, const HostWatch &watch,
            Doorbell &bell, std::chrono::milliseconds timeout);
  ~CudaParts();
  /// Before anything waits on the device: what CUDA would have wait later. SystemError.
  Status prepare();
  /// Kernels may still access what they have: it is never freed.
  void abandon() { isAbandoned = true; }

  /// Local. Of the terms the reference is not looked at.
  StatusOr<DevicePart *> make(const partitioned::Terms &terms);
  /// From here on kernels of the program, or replays of graphs, may be at it.
  static void loseSight(PairPart &part);
  Status start(PairPart &part, void *stream);
  Status mark(PairPart &part, plan::Range range, void *stream);
  Status prepare(PairPart &part, void *stream);
  Status wait(PairPart &part, void *stream);
  Status release(PairPart &part);
  /// What kernels of all the rank's requests look through while they wait. Again, SystemError.
  StatusOr<device::Sends *> sendsOfAll();

  /// Of a request, as its words on the device are.
  struct Epochs {
    uint64_t started, ended;
  };
  StatusOr<Epochs> epochsOf(const device::State *state);
  /// What its kernels that wait say to the host, and hear of it.
  static device::HostSide hostSideOf(const WaitBound &bound);

  /// Now and then, by a thread that no call of CUDA holds up: requests that are matched are told
  /// where their other side is. Calls nothing of CUDA.
  void tidy();
  /// Whether no wait is in a stream whose epoch has not ended.
  StatusOr<bool> isOver();
  /// The same; false while requests are made or freed.
  StatusOr<bool> isOverNow();
  /// Of a kernel of kPartPlace that gave up. collective: what its request is, if it is one; else
  /// empty.
  std::string describe(const GivingUp &where, const std::string &collective);
  /// Whether memory of occlMemAlloc may be stored to by others, though the communicator has failed.
  bool hasReceived() const { return hasReceives.load(std::memory_order_relaxed); }

private:
  /// What a request that is freed had, once its peer has let go of it.
  struct Remains {
    ArenaSpace::Piece piece;
    PinnedWords *peer;
  };

  StatusOr<bool> areEpochsOver();
  Status check(const partitioned::Terms &terms) const;
  Status prepareFirst();
  Status clearWords();
  Status recycle();
  Status morePinned();
  PairPart &keep(const partitioned::Terms &terms);
  bool takePiece(PairPart &part, uint64_t bytes);
  Status place(PairPart &part, char *buffer);
  Status put(PairPart &part, const device::State &state, uint64_t bytes);
  Status leave(PairPart &part);
  Status add(PairPart &part);
  void takeBack(PairPart &part) noexcept;
  Status tend(const PairPart &part);
  void connect();
  Status connect(PairPart &part);
  Status connectReceive(PairPart &part, const partitioned::Counterpart &sender);
  Status connectSend(PairPart &part, const partitioned::Counterpart &receiver);
  void connected(PairPart &part);
  char *inArena(uint32_t rank, uint64_t offsetAndOne, uint64_t bytes) const;
  template <class Words>
  Words *wordsIn(uint32_t rank, uint64_t offsetAndOne, uint64_t number) const;
  Status damaged(const PairPart &part) const;
  Status failed(const Status &cause) const;
  static StatusOr<bool> isCapturing(void *stream);
  template <class Launch>
  Status launchIn(const PairPart &part, void *stream, bool waits, const Launch &launch);
  Status launchMarks(PairPart &part, plan::Range range, void *stream, bool isCaptured);
  Status copyMarks(PairPart &part, plan::Range range, uint64_t epoch, void *stream);
  PartWait waitOf(const PairPart &part) const;
  std::string describe(const PairPart &part) const;

  daemon::Fabric &fabric;
  DeviceMemory &memory;
  ArenaSpace &space;
  const HostWatch &watch;
  const std::chrono::milliseconds timeout;
  HeldStreams &held;
  bool isAbandoned = false;
  Atomic<bool> hasReceives{false};

  Mutex making; // held by calls that make and free requests, inside calls of CUDA, too
  struct First {
    ArenaSpace::Piece table, arrivals;
  };
  std::optional<First> first;      // for what follows, and `words`
  device::Sends *sends = nullptr;  // once it is cleared
  std::vector<PairPart *> entries; // of `sends`
  std::vector<void *> pinned;

  Mutex mutex; // guards what follows; taken after `making`
  std::unique_ptr<ArrivalWords> words;
  ArenaSpace::Piece wordsPiece{};
  std::vector<PinnedWords *> freePeers;
  std::list<Remains> inUse, remains; // of requests, and of those that are freed
  std::unordered_map<const PairPart *, std::unique_ptr<PairPart>> all;
  partitioned::Matching matching;
};

} // namespace occl::cuda
