// The lane: a straight way for a small collective that its caller runs by itself (occlRun) while
// nothing else is open on the device.
//
// What an executor would do for such an invocation is the same each time, but for the ordinal and
// the user's buffers: its memory is that of the one before, the readers know where it lies, its one
// thread block is a few steps in lines. So it is looked up once (Lane, FlatLines), and done without
// deciding anything (LaneRun).
//
// It leaves nothing out that anybody else can see. The same words are changed under the same locks
// in the same order as by admission, task board and executor: an invocation in the lane is
// announced, stands on the board, its task claimed. So nobody has to know that there is a lane, and
// who is in it may leave it at any look: an executor goes on with the claimed task.
#pragma once

#include "runtime/exec/host/flat_lines.h"
#include "runtime/invocation/open_invocation.h"
#include "runtime/sched/offers.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace occl::daemon {

/// What the next invocation of a resident collective takes over from the one before, as long as the
/// leases of all ranks are what they were. Under the admission's lock.
class Lane {
public:
  /// nullptr if the collective is not for it, or not all leases are known. `id` is resident.
  static std::unique_ptr<Lane> make(const IdState &id, const Fabric &fabric);

  /// Whether it is still true.
  bool isUpToDate(const IdState &id) const;
  /// Whether the buffers are such as Admission::checkBuffers accepts.
  bool accepts(const void *input, const void *output) const {
    return aliasing.accepts(input, output);
  }
  /// Of invocation `ordinal`, from the start of the arena.
  uint64_t arenaOffset(uint64_t ordinal) const;
  /// Makes the view of the invocation before that of invocation `ordinal`.
  void prepare(interpreter::Invocation &view, uint64_t ordinal, const void *input,
               void *output) const;

private:
  Lane() = default;

  struct Ring {
    char *begin = nullptr;
    uint64_t blockBytes = 0;
    interpreter::Place place = 0;
  };
  const Collective *collective = nullptr;
  uint32_t leasesForgotten = 0;
  uint64_t ringOffset = 0, ownBlockBytes = 0;
  plan::Aliasing aliasing;
  std::vector<Ring> rings;
};

/// Runs an invocation that Admission::enterLane() has let in. Used once, by the thread that has
/// submitted it.
class LaneRun {
public:
  explicit LaneRun(OpenInvocation &invocation)
      : invocation(invocation), core(*invocation.core), task(invocation.tasks[0]),
        flat(*invocation.collective->flat, invocation.view) {}

  /// True: it is complete, and over with everything that belongs to it, the communicator perhaps
  /// included. False: it did not end as fast as that, or something else is to be done; all is as if
  /// the caller had just claimed the task.
  bool run();
  /// After run(): the device with the task that is the caller's to go on with.
  BlockTask &claimed() const { return task; }
  /// Since when it has waited.
  Ticks waitingSince() const { return waitBegin; }

private:
  /// Waits until all is done. False: leaves.
  bool await();
  bool mayStay();
  void leave();

  OpenInvocation &invocation;
  Core &core;
  BlockTask &task;
  interpreter::FlatRun flat;
  Polling polling;
  Offers offers;
  uint32_t numWaits = 0;
  Ticks waitBegin = 0, waiting = 0;
};

} // namespace occl::daemon
