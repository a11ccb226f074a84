// How a warp bounds its waits, and says where it stood.
#pragma once

#include "runtime/base/system_words.cuh"
#include "runtime/cuda/tables/bound.h"

#include <cstdint>

namespace occl::cuda {

/// What a warp that waits is to do: go on, or leave to others what it has to do, or end with the
/// whole invocation because everything is to or because it is late. Of several warps of a thread
/// block the largest counts.
enum class Verdict : uint32_t { GoOn, Leave, Abort, Late };

/// Counts polls in vain of one warp; all lanes call together.
class WarpWatch {
public:
  /// Who may not leave gets no Verdict::Leave, and is nowhere said to have progressed: `stuckSince`
  /// then takes no register.
  __device__ explicit WarpWatch(const WaitBound &bound, bool mayLeave = true)
      : bound(bound), mayLeave(mayLeave) {}

  /// Between two polls something has been done.
  __device__ void progressed() { stuckSince = 0; }

  /// After each poll in vain; if so, look().
  __device__ bool isDue() { return polls++ % kPollsPerLook == 0; }
  /// `peer`: the rank that this lane waits for, or ~0u.
  __device__ Verdict look(uint32_t peer) {
    // One lane's clock, so that all decide alike. The end of everything counts before the others.
    uint64_t now = __shfl_sync(~0u, deviceClock(), 0);
    const auto tick = static_cast<uint32_t>(now >> kTickBits);
    if (begin == 0) {
      begin = now;
      hostTick = tick + kTicksUntilHost;
    }
    if (stuckSince == 0)
      stuckSince = now;
    Verdict verdict = Verdict::GoOn;
    if (now - begin > bound.timeout)
      verdict = Verdict::Late;
    else if (mayLeave && bound.leaveAfter != 0 && now - stuckSince > bound.leaveAfter)
      verdict = Verdict::Leave;
    const bool isHostsTurn = static_cast<int32_t>(tick - hostTick) >= 0;
    if (isOver(isHostsTurn || verdict != Verdict::GoOn))
      return Verdict::Abort;
    if (isHostsTurn) {
      hostTick = tick + kTicksApart;
      if (now - (mayLeave ? stuckSince : begin) > kLong)
        sayThatItWaits(peer, now);
    }
    return verdict;
  }

private:
  /// Whether some warp of the rank has given up, or seen that the host has ended everything; so of
  /// many kernels, one behind the other, only the first waits until it looks at the host.
  __device__ bool isOver(bool asksHost) const {
    const uint32_t given = *static_cast<const volatile uint32_t *>(bound.hasGivenUp);
    if (__any_sync(~0u, given != 0))
      return true;
    if (!asksHost)
      return false;
    const uint32_t abort = *static_cast<const volatile uint32_t *>(&bound.host->abort);
    if (!__any_sync(~0u, abort != 0))
      return false;
    if (threadIdx.x % 32 == 0)
      atomicExch(bound.hasGivenUp, 1);
    return true;
  }
  __device__ void sayThatItWaits(uint32_t peer, uint64_t now) {
    storeWord(&bound.host->waiting[bound.place], now);
    if (peer != ~0u)
      *static_cast<volatile uint32_t *>(&bound.host->waitsFor) = peer + 1;
  }

  static constexpr uint32_t kPollsPerLook = 256;
  static constexpr uint64_t kLong = 10'000'000;
  /// Memory of the host serves one warp after the other, about a microsecond each, and what has
  /// come meanwhile waits: the thousand warps of a call would take a millisecond, be late for the
  /// next call, and have those of other ranks wait and look as well. So they look after 1 to 2 ms,
  /// then every 4, and before they make way or give up.
  static constexpr uint32_t kTickBits = 20; // of nanoseconds
  static constexpr uint32_t kTicksUntilHost = 2, kTicksApart = 4;

  const WaitBound &bound;
  const bool mayLeave;
  uint64_t begin = 0, stuckSince = 0;
  uint32_t hostTick = 0; // when to look at memory of the host
  uint32_t polls = 1;
};

/// One thread. Of all that give up on the rank the first one's stays, and none if the host has
/// ended everything before.
__device__ inline void giveUp(const WaitBound &bound, GivingUp what) {
  if (atomicExch(bound.hasGivenUp, 1) != 0)
    return;
  what.isValid = 0;
  bound.host->givingUp = what;
  __threadfence_system();
  *static_cast<volatile uint32_t *>(&bound.host->givingUp.isValid) = 1;
}

/// All lanes of a warp that waits in vain; the lane of `stuck` says where.
__device__ inline Verdict lookAround(const WaitBound &bound, WarpWatch &watch,
                                     const GivingUp &stuck) {
  bool isStuck = stuck.obstacle.reason != interpreter::BlockReason::None;
  Verdict verdict = watch.look(isStuck ? stuck.obstacle.peer : ~0u);
  if (verdict == Verdict::Late && isStuck)
    giveUp(bound, stuck);
  return verdict;
}
/// The same after a poll in vain, when it is due.
__device__ inline Verdict afterVainPoll(const WaitBound &bound, WarpWatch &watch,
                                        const GivingUp &stuck) {
  return watch.isDue() ? lookAround(bound, watch, stuck) : Verdict::GoOn;
}

} // namespace occl::cuda
