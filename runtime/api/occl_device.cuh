// Partitioned requests inside kernels (occl_partitioned_device.h). A header alone:
// nothing is linked. C++17, CUDA 12 or newer, compute capability 8.0 or newer.
//
//   __global__ void produce(occlPartDevice_t handle, float *field) {
//     occl::device::Part part(handle);                       // once a thread block
//     compute(field, blockIdx.x);                            // all its threads
//     ready(occl::device::Block(), part, blockIdx.x);        // the partition travels
//   }
//
// A group is what calls together: Thread, Warp (all 32 lanes) or Block (all threads, of one
// dimension or more). All of the group call with the same arguments. What the threads of the group
// have stored before ready() is what arrives; whoever is told that a partition has arrived may read
// it with plain loads (not through the read-only cache: no __ldg, no `const __restrict__`).
//
// Registers: up to 140 a thread, so kernels of more than 384 threads that call these functions say
// how many they have (__launch_bounds__); otherwise their launch may fail.
//
// Compiled without CUDA the same functions are host code for groups of one thread, which tests use.
#ifndef OCCL_DEVICE_CUH
#define OCCL_DEVICE_CUH

#include "occl_device_groups.cuh"
#include "occl_device_parts.cuh"
#include "occl_partitioned_device.h"

#include <cstdint>

namespace occl::device {
/// What programs use of it is named at the end.
namespace detail {

/// Stores the unit at the receiver, who has started, if nobody else does.
template <class Group>
OCCL_DEVICE_FUNCTION bool storeUnit(Group group, const Part &part, uint64_t unit) {
  const bool isMine = group.rank() == 0 && !part.hasFailed() && part.claim(unit);
  if (group.broadcast(isMine ? 1 : 0) == 0)
    return false;
  uint64_t begin, end;
  part.bytesOf(unit, begin, end);
  copy(group, part.s->peer.buffer + begin, part.s->buffer + begin, end - begin);
  group.sync();
  if (group.rank() == 0)
    part.stored(unit);
  return true;
}

/// Some units of a send: first, first + step, ..., less than end.
struct Units {
  uint64_t first, end, step;
};
/// What became of them: whether some were stored here, whether some are not stored yet, and whether
/// some of these are only waiting for the receiver to start.
struct Stored {
  bool some, left, deferred;
};

/// Stores those whose messages are complete and that nobody has taken, if the receiver has started.
template <class Group>
OCCL_DEVICE_FUNCTION Stored storeUnits(Group group, const Part &part, Units units, bool asksPeer) {
  constexpr uint64_t kNone = ~uint64_t{0};
  Stored result = {false, false, false};
  const bool mayStore = group.broadcast(group.rank() == 0 && part.hasCredit(asksPeer) ? 1 : 0) != 0;
  // Each thread looks at one, the group stores the first that can be.
  for (uint64_t first = units.first; first < units.end;) {
    const uint64_t mine = first + group.rank() * units.step;
    const bool isLeft = mine < units.end && !part.isStored(mine);
    const bool couldBe =
        isLeft && part.isClaimable(mine) && part.isComplete(mine / part.s->cut.unitsOfMessage);
    const bool can = mayStore && couldBe;
    const uint64_t chosen = group.smallest(can ? mine : kNone);
    const bool isPassed = isLeft && (chosen == kNone || mine < chosen);
    result.left |= group.smallest(isPassed ? 0 : 1) == 0;
    if (!mayStore)
      result.deferred |= group.smallest(isLeft && couldBe ? 0 : 1) == 0;
    if (chosen == kNone) {
      first += group.size() * units.step;
      continue;
    }
    const bool hasStored = storeUnit(group, part, chosen);
    result.some |= hasStored;
    result.left |= !hasStored; // another one has claimed it
    first = chosen + units.step;
  }
  return result;
}

/// Those of all sends of the rank that marks had to leave. Before that, `deferred` is taken back: a
/// mark that leaves something now says so again.
template <class Group> OCCL_DEVICE_FUNCTION void storeDeferred(Group group, Sends &sends) {
  uint64_t number = 0;
  if (group.rank() == 0 && loadWord(&sends.deferred) != 0) {
    number = loadWord(&sends.number);
    add(&sends.scanners, 1);
    exchangeIf(&sends.deferred, 1, 0);
    fenceSequential();
  }
  number = group.broadcast(number);
  if (number == 0) // there is no send that could have left something
    return;
  bool isLeft = false;
  for (uint64_t i = 0; i < number; ++i) {
    auto *state = reinterpret_cast<State *>(group.broadcast(
        group.rank() == 0 ? loadWord(reinterpret_cast<uint64_t *>(&sends.of[i])) : 0));
    if (state == nullptr)
      continue;
    const Part part(state);
    const bool isOpen = group.broadcast(group.rank() == 0 && loadWord(&state->done) < part.e) != 0;
    isLeft |= isOpen && storeUnits(group, part, {0, state->cut.units(), 1}, true).deferred;
  }
  group.sync();
  if (group.rank() == 0 && isLeft)
    releaseWord(&sends.deferred, 1);
  if (group.rank() == 0) {
    fenceSequential();
    add(&sends.scanners, ~uint64_t{0});
  }
}

// --- for kernels ---

/// Partition p of a send, or of a collective's input, is complete. Of a send the group stores it to
/// the receiver, once all of its message are; of a collective others do. Never waits; what cannot
/// be stored, as the receiver has not started, is left to who waits. Large messages want large
/// groups: a thread for itself copies a megabyte in milliseconds. What bulk copies (TMA) have
/// written each thread that issued some makes visible before: cp.async.bulk.wait_group 0, then
/// fence.proxy.async.
template <class Group> OCCL_DEVICE_FUNCTION void ready(Group group, Part &part, uint64_t p) {
  group.sync();
  uint64_t how = 0; // 1: it completes its message; 2: it is this group's, and not marked yet
  if (group.rank() == 0)
    how = part.isSimple && part.takeUnmarked(p) ? 2 : part.mark(p) ? 1 : 0;
  how = group.broadcast(how);
  if (how == 0)
    return;
  if (how == 2) {
    const uint64_t bytes = part.s->partitionBytes, at = p * bytes;
    copy(group, part.s->peer.buffer + at, part.s->buffer + at, bytes);
    group.sync();
    if (group.rank() == 0)
      part.storedUnmarked(p);
    return;
  }
  const uint64_t number = part.s->cut.unitsOfMessage, first = p / part.s->cut.perMessage * number;
  const Stored stored = storeUnits(group, part, {first, first + number, 1}, false);
  if (stored.deferred && group.rank() == 0)
    releaseWord(&part.s->sends->deferred, 1);
}

/// Partitions first to last, both included: all complete.
template <class Group>
OCCL_DEVICE_FUNCTION void readyRange(Group group, Part &part, uint64_t first, uint64_t last) {
  if (first > last || last >= part.s->partitions)
    return part.misused(Misuse::NoPartition, last);
  for (uint64_t p = first; p <= last; ++p)
    ready(group, part, p);
}

/// The same for a partition that several groups make: the call that is the `times`-th (1 or more)
/// of the partition's counter marks it. A counter is a word of the device's memory for each
/// partition, 0 at first; it goes on counting in the next epochs.
template <class Group>
OCCL_DEVICE_FUNCTION void readyCounted(Group group, Part &part, uint64_t p, uint64_t *counter,
                                       uint64_t times) {
  group.sync();
  bool isLast = false;
  if (group.rank() == 0) {
    fenceDevice();
    isLast = times <= 1 || (add(counter, 1) + 1) % times == 0;
    fenceDevice(); // what the others have stored is seen
  }
  if (group.broadcast(isLast ? 1 : 0) != 0)
    ready(group, part, p);
}

/// Whether partition q of a receive, or of a collective's output, is there. Without what marks have
/// left.
OCCL_DEVICE_FUNCTION bool isThere(Part &part, uint64_t q) {
  return part.hasCome(q) || acquireWord(&part.s->done) >= part.e;
}

/// Whether partition q of a receive, or of a collective's output, may be read by this thread: one
/// look. Without an epoch: yes.
OCCL_DEVICE_FUNCTION bool arrived(Part &part, uint64_t q) {
  if (q >= part.numArriving()) {
    part.misusedArrival(q);
    return false;
  }
  if (isThere(part, q))
    return true;
  storeDeferred(Thread(), *part.s->sends);
  return false;
}

/// Until partition q of a receive, or of a collective's output, has arrived, the communicator has
/// failed or the sender freed its request, or for about so many nanoseconds. A kernel that waits
/// holds its place on the device: a program that waits without bound sees to it that what it waits
/// for does not need that place.
template <class Group>
OCCL_DEVICE_FUNCTION Wait wait(Group group, Part &part, uint64_t q, uint64_t nanoseconds) {
  if (q >= part.numArriving()) {
    if (group.rank() == 0)
      part.misusedArrival(q);
    return Wait::Failed;
  }
  constexpr uint32_t kLooks = 32; // of one thread, before all look for what marks have left
  Patience patience(nanoseconds);
  for (;;) {
    Wait found = kGoOn;
    if (group.rank() == 0) {
      bool isHere = false;
      for (uint32_t i = 0; i < kLooks && !isHere; ++i)
        isHere = isThere(part, q);
      found = isHere ? Wait::Arrived : patience.look(part);
      if (found == Wait::Failed && isThere(part, q)) // it may have come before that
        found = Wait::Arrived;
    }
    found = static_cast<Wait>(group.broadcast(static_cast<uint64_t>(found)));
    if (found != kGoOn)
      return found;
    storeDeferred(group, *part.s->sends);
  }
}

/// A send: stores what could not be when it was marked, and returns Arrived once all has been
/// stored; else as wait(). Meanwhile what marks have left of other sends is stored, too: its
/// receiver may be who is to start this one. Needed only by kernels that depend on that before they
/// end.
template <class Group>
OCCL_DEVICE_FUNCTION Wait flush(Group group, Part &part, uint64_t nanoseconds) {
  if (part.s->side != Side::Send) {
    if (group.rank() == 0)
      part.misused(Misuse::WrongSide, 0);
    return Wait::Failed;
  }
  // The first thread decides when to give up, so that the group leaves together.
  Patience patience(nanoseconds);
  for (;;) {
    const Stored stored = storeUnits(group, part, {0, part.s->cut.units(), 1}, true);
    if (!stored.left)
      return Wait::Arrived;
    const Wait mine = group.rank() == 0 ? patience.look(part) : kGoOn;
    const auto found = static_cast<Wait>(group.broadcast(static_cast<uint64_t>(mine)));
    if (found != kGoOn)
      return found;
    storeDeferred(group, *part.s->sends);
  }
}

/// One thread: the next epoch, as occlPstartOn has it; the last one has ended.
OCCL_DEVICE_FUNCTION void start(occlPartDevice_t handle) {
  Part part(handle);
  if (part.s->side == Side::Collective) // the host starts those
    return part.misused(Misuse::WrongSide, 0);
  fenceSequential(); // what this rank has done before is over for who sees that it has started
  if (loadWord(&part.s->done) != part.e ||
      exchangeForAll(&part.s->epoch, part.e, part.e + 1) != part.e)
    return part.misused(Misuse::Active, 0);
  if (part.s->side == Side::Receive && part.isConnected())
    releaseWord(part.s->peer.started, part.e + 1);
}

} // namespace detail

using detail::arrived;
using detail::flush;
using detail::Part;
using detail::ready;
using detail::readyCounted;
using detail::readyRange;
using detail::start;
using detail::Thread;
using detail::wait;
using detail::Wait;
#ifdef __CUDACC__
using detail::Block;
using detail::Warp;
#endif

} // namespace occl::device

#endif // OCCL_DEVICE_CUH
