// How a warp bounds its waits, and says where it stood.
#pragma once

#include "runtime/base/system_words.cuh"
#include "runtime/cuda/tables/bound.h"

#include <cstdint>

namespace occl::cuda {

/// What a warp that waits is to do: go on, or end with the whole invocation because everything is
/// to or because it is late, or leave to others what it has to do.
enum class Verdict : uint32_t { GoOn, Abort, Late, Leave };

/// Counts polls in vain of one warp; all lanes call together.
class WarpWatch {
public:
  __device__ explicit WarpWatch(const WaitBound &bound) : bound(bound) {}

  /// After each poll in vain. `peer`: the rank that this lane waits for, or ~0u.
  __device__ Verdict inVain(uint32_t peer) { return isDue() ? look(peer) : Verdict::GoOn; }
  /// Between two polls something has been done.
  __device__ void progressed() { stuckSince = 0; }

  /// The same for whom finding out the peer takes longer: after each poll in vain, and, if so,
  /// look().
  __device__ bool isDue() { return polls++ % kPollsPerLook == 0; }
  __device__ Verdict look(uint32_t peer) {
    uint64_t now = __shfl_sync(~0u, deviceClock(), 0);
    if (begin == 0)
      begin = now;
    if (stuckSince == 0)
      stuckSince = now;
    uint32_t abort = *static_cast<const volatile uint32_t *>(&bound.host->abort);
    if (__any_sync(~0u, abort != 0))
      return Verdict::Abort;
    if (now - begin > bound.timeout)
      return Verdict::Late;
    if (now - begin > kLong)
      sayThatItWaits(peer, now);
    if (bound.leaveAfter != 0 && now - stuckSince > bound.leaveAfter)
      return Verdict::Leave;
    return Verdict::GoOn;
  }

private:
  __device__ void sayThatItWaits(uint32_t peer, uint64_t now) {
    storeWord(&bound.host->waiting[bound.place], now);
    if (peer != ~0u)
      *static_cast<volatile uint32_t *>(&bound.host->waitsFor) = peer + 1;
  }

  static constexpr uint32_t kPollsPerLook = 256;
  static constexpr uint64_t kLong = 10'000'000;

  const WaitBound &bound;
  uint64_t begin = 0, stuckSince = 0;
  uint32_t polls = 1;
};

/// One thread. Of all that give up on the rank the first one's stays.
__device__ inline void giveUp(const WaitBound &bound, GivingUp what) {
  if (atomicExch(bound.hasGivenUp, 1) != 0)
    return;
  what.isValid = 0;
  bound.host->givingUp = what;
  __threadfence_system();
  *static_cast<volatile uint32_t *>(&bound.host->givingUp.isValid) = 1;
}

/// All lanes of a warp, after a poll in vain; the lane of `stuck` says where.
__device__ inline Verdict afterVainPoll(const WaitBound &bound, WarpWatch &watch,
                                        const GivingUp &stuck) {
  bool isStuck = stuck.obstacle.reason != interpreter::BlockReason::None;
  Verdict verdict = watch.inVain(isStuck ? stuck.obstacle.peer : ~0u);
  if (verdict == Verdict::Late && isStuck)
    giveUp(bound, stuck);
  return verdict;
}

} // namespace occl::cuda
