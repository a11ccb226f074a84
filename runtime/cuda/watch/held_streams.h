// Whether streams of this process wait on a device, or will: then what they wait for must not need
// a launch.
//
// A copy to pageable memory behind a stream that waits keeps CUDA's lock, so nothing is launched
// until it ends; a kernel that is loaded behind it keeps what is launched later from beginning; and
// so do as many such streams as there are connections (docs/decisions/gpu/stream-order.md). So
// daemons in strict mode, all of whose executors leave, must have somebody stay before the first
// stream waits. It counts before anything that waits is put into it, and whoever puts that there
// has the daemons see to it first.
#pragma once

#include "runtime/sync/atomic.h"
#include "runtime/sync/mutex.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

namespace occl::cuda {

/// Of one device. Thread safety: any.
class HeldStreams {
public:
  /// A daemon all of whose executors leave as long as no stream waits.
  class StrictDaemon {
  public:
    virtual ~StrictDaemon() = default;
    /// A store; called with a lock.
    virtual void letAllLeave(bool may) = 0;
    /// May not leave any more: whatever it has open goes on from now on without another launch. May
    /// take as long as a launch. False: it is to be asked again, as executors are held off.
    virtual bool ensureLookout() = 0;
  };

  /// letAllLeave() is called at once. Until detach() has returned.
  void attach(StrictDaemon &daemon);
  void detach(StrictDaemon &daemon);
  /// Whether there are such daemons: else nobody need tell of kernels.
  bool isWatched() const { return numDaemons.load(std::memory_order_acquire) != 0; }

  /// Something that waits will be put into the stream, a number that is no other stream's; once
  /// for each leave(). May take as long as launches do.
  void enter(uint64_t stream);
  void leave(uint64_t stream);
  /// The same for what is over when `isOver` says so, and all that was put into the stream before.
  /// It is called, and destroyed, without locks.
  void enterUntil(uint64_t stream, std::function<bool()> isOver);
  /// Looks for what is over.
  void sweep();

  uint32_t count() const;

private:
  using IsOver = std::shared_ptr<const std::function<bool()>>;
  struct Held {
    uint32_t number = 0;        // of enter()
    std::vector<IsOver> isOver; // of each enterUntil()
  };
  template <class Change> void enterWith(uint64_t stream, const Change &change);
  void ensureLookouts();
  void tell();

  Atomic<uint32_t> numDaemons{0};
  Mutex calling;       // held during ensureLookout(); before `mutex`
  mutable Mutex mutex; // guards what follows
  std::map<uint64_t, Held> streams;
  std::vector<StrictDaemon *> daemons; // changed with both locks
  bool isAnyHeld = false;              // what they have been told
  bool isSeenTo = false;               // and all have somebody stay
};

/// This process's.
HeldStreams &heldStreamsOn(int device);

} // namespace occl::cuda
