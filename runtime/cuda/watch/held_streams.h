// The streams of this process that wait on a device, or will: whether what is launched can begin.
//
// With as many waiting streams as there are connections to the device nothing begins any more
// (waiting.h). So daemons in strict mode, all of whose executors leave, must have somebody stay
// before there are as many. A stream counts before anything that waits is put into it, and whoever
// makes it as many as there are connections has the daemons see to that first.
//
// What the streams wait for can then go on without a launch; and as long as they are fewer, a
// launch can begin. Streams that wait for events of others, and the user's own waits, count in the
// hardware likewise, but nobody sees them here.
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
  /// A daemon all of whose executors leave as long as they may.
  class StrictDaemon {
  public:
    virtual ~StrictDaemon() = default;
    /// A store; called with a lock.
    virtual void letAllLeave(bool may) = 0;
    /// May not leave any more: whatever it has open goes on from now on without another launch. May
    /// take as long as a launch.
    virtual void ensureLookout() = 0;
  };

  explicit HeldStreams(uint32_t connections) : connections(connections) {}

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
    uint32_t number = 0; // of enter()
    IsOver isOver;       // of the last enterUntil(), if any
  };
  template <class Change> void enterWith(uint64_t stream, const Change &change);
  void ensureLookouts();
  bool tell();

  const uint32_t connections;
  Atomic<uint32_t> numDaemons{0};
  Mutex calling;       // held during ensureLookout(); before `mutex`
  mutable Mutex mutex; // guards what follows
  std::map<uint64_t, Held> streams;
  std::vector<StrictDaemon *> daemons; // changed with both locks
  bool isFull = false;                 // what they have been told
};

/// This process's.
HeldStreams &heldStreamsOn(int device);

} // namespace occl::cuda
