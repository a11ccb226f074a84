// The kernels of partitioned requests, of the functions that users' kernels have as well.
#include "runtime/cuda/partitioned/part_kernels.h"

#include "runtime/cuda/kernels/bound.cuh"
#include "runtime/cuda/partitioned/copied_marks.cuh"
#include "runtime/cuda/tables/misuse.h"
#include "runtime/cuda/tables/replay_word.h"

#include <cuda_runtime.h>

namespace occl::cuda {

namespace {

using device::Block;
using device::Misuse;
using device::Part;
using device::Stored;

using device::Warp;

constexpr uint32_t kPartThreads = 512, kMostPartBlocks = 32, kWarp = 32;
/// Of one unit or few the block that marks is as fast as another kernel.
constexpr uint64_t kUnitsMarked = 2;
/// Nanoseconds without anything to store, after which all blocks but one leave the device.
constexpr uint64_t kStay = 1'000'000;

__global__ void startPart(device::State *state) { device::start({state}); }

/// The block's share of the messages of these partitions, as far as they are complete.
__device__ void storeOf(Part &part, uint64_t first, uint64_t last) {
  const device::Cut &cut = part.s->cut;
  const device::Units units = {first / cut.perMessage * cut.unitsOfMessage + blockIdx.x,
                               (last / cut.perMessage + 1) * cut.unitsOfMessage, gridDim.x};
  const Stored stored = device::storeUnits(Block(), part, units, true);
  if (stored.deferred && threadIdx.x == 0)
    device::releaseWord(&part.s->sends->deferred, 1);
}

/// One block. Stores what it completes, unless another kernel comes for that.
__global__ void __launch_bounds__(kPartThreads)
    markPart(device::State *state, uint64_t first, uint64_t last, bool stores) {
  Part part({state});
  for (uint64_t p = first + threadIdx.x; p <= last; p += kPartThreads)
    part.mark(p);
  __syncthreads();
  if (stores)
    storeOf(part, first, last);
}

__global__ void __launch_bounds__(kPartThreads)
    storePart(device::State *state, uint64_t first, uint64_t last) {
  Part part({state});
  storeOf(part, first, last);
}

/// A warp, which finds room beside kernels that fill a multiprocessor. Behind a copy of these
/// partitions to the receiver.
__global__ void __launch_bounds__(kWarp)
    publishPart(device::State *state, uint64_t epoch, uint64_t first, uint64_t last) {
  device::publishCopied(Warp(), Part(state), epoch, first, last);
}

__global__ void refusePart(device::State *state, uint64_t partition) {
  device::refuseMark(Part(state), partition);
}

/// Of a block that waits: its first warp says, for all, whether to look again.
class Bounded {
public:
  __device__ explicit Bounded(const PartWait &wait) : wait(wait), watch(wait.bound) {}

  /// By all threads of a block, alike: a kernel of this rank has given up before, or there is no
  /// epoch. What has been misused since the last one is said.
  __device__ bool isTooLate(const Part &part) {
    bool isLate = false;
    if (threadIdx.x == 0) {
      isLate = part.hasFailed();
      const bool hasEpoch = device::loadWord(&part.s->done) < part.e;
      if (!isLate && !hasEpoch && blockIdx.x == 0)
        (void)isMisused(part);
      isLate |= !hasEpoch;
    }
    return Block().broadcast(isLate ? 1 : 0) != 0;
  }
  /// By all threads of the first block: the epoch has ended, unless something was misused in it.
  __device__ void endEpoch(const Part &part) {
    if (threadIdx.x == 0 && !isMisused(part))
      device::releaseWord(&part.s->done, part.e);
  }
  /// By all threads, after a look in vain. What marks have left of other sends is stored: their
  /// receivers may be what this one waits for. peer: that is waited for, or ~0u; describe(): the
  /// obstacle, of one thread.
  template <class Describe>
  __device__ bool mayGoOn(const Part &part, uint32_t peer, const Describe &describe) {
    device::storeDeferred(Block(), *part.s->sends);
    uint64_t mayGo = 0;
    if (threadIdx.x < 32)
      mayGo = look(part, peer, describe) ? 1 : 0;
    return Block().broadcast(mayGo) != 0;
  }

private:
  /// The first warp.
  template <class Describe>
  __device__ bool look(const Part &part, uint32_t peer, const Describe &describe) {
    if (__any_sync(~0u, threadIdx.x == 0 && isMisused(part)))
      return false;
    // Memory of the host, so rarely: each look takes some microseconds. The peer may have it all
    // before this rank's own words say so: what is lacking is looked at when it has been freed for
    // a while.
    if (looks++ % kLooksApart == 0 &&
        __any_sync(~0u, device::acquireWord(&part.s->host->isFreed) != 0))
      ++looksFreed;
    const Verdict verdict = watch.look(threadIdx.x == 0 ? peer : ~0u);
    if (verdict == Verdict::Abort)
      return false;
    if (looksFreed < 2 && verdict != Verdict::Late)
      return true;
    // Freed comes after the last thing that the peer did: was it what is waited for?
    bool isOver = true;
    if (threadIdx.x == 0) {
      const interpreter::Obstacle obstacle = describe();
      isOver = obstacle.reason != interpreter::BlockReason::None;
      if (isOver && verdict == Verdict::Late)
        end(part, 0, obstacle);
      else if (isOver)
        end(part, kFreedPart, {interpreter::BlockReason::Announce, kFreedPart, wait.peer});
    }
    return __shfl_sync(~0u, isOver, 0) == 0;
  }
  /// One thread. If so, that is said.
  __device__ bool isMisused(const Part &part) {
    const bool isMisused = device::loadWord(&part.s->misuse) != 0;
    if (isMisused)
      giveUp(wait.bound, givingUpFor(*part.s, wait.bound.place, wait.serial));
    return isMisused;
  }
  /// One thread.
  __device__ void end(const Part &part, uint32_t refusal, const interpreter::Obstacle &obstacle) {
    GivingUp where{0, wait.bound.place, part.e, {}, obstacle, blockIdx.x, refusal != 0};
    where.context.instruction = wait.serial;
    giveUp(wait.bound, where);
  }

  static constexpr uint32_t kLooksApart = 64;

  const PartWait &wait;
  WarpWatch watch;
  uint32_t looks = 0, looksFreed = 0;
};

/// What a send still waits for, one thread: the program's first mark that is missing, or the peer.
__device__ interpreter::Obstacle missingOfSend(const Part &part, uint32_t peer) {
  const device::State &state = *part.s;
  for (uint64_t p = 0; p < state.partitions; ++p)
    if (device::loadWord(&state.marked[p]) < part.e)
      return {interpreter::BlockReason::Dependency, static_cast<uint32_t>(p), peer};
  for (uint64_t unit = 0; unit < state.cut.units(); ++unit)
    if (!part.isStored(unit))
      return {interpreter::BlockReason::Credit, static_cast<uint32_t>(unit), peer};
  return {};
}

__device__ interpreter::Obstacle missingOfReceive(Part part, uint32_t peer) {
  if (part.s->partitions != 0 && !part.isConnected())
    return {interpreter::BlockReason::Data, 0, peer};
  for (uint64_t q = 0; q < part.s->partitions; ++q)
    if (!part.hasArrived(q))
      return {interpreter::BlockReason::Data, static_cast<uint32_t>(q), peer};
  return {};
}

__global__ void __launch_bounds__(kPartThreads) waitForSend(const PartWait wait) {
  Part part({wait.state});
  Bounded bounded(wait);
  const uint64_t all = part.s->cut.units();
  if (bounded.isTooLate(part))
    return;
  // At first each block has some units. The first one has all once there is nothing more to store.
  device::Units mine = {blockIdx.x, all, gridDim.x};
  for (uint64_t stuckSince = 0;;) {
    const Stored stored = device::storeUnits(Block(), part, mine, true);
    if (!stored.left && (blockIdx.x != 0 || mine.step == 1))
      break;
    if (stored.some) {
      stuckSince = 0;
      continue;
    }
    const uint64_t time = Block().broadcast(device::deviceClock());
    stuckSince = stuckSince == 0 ? time : stuckSince;
    if (blockIdx.x == 0)
      mine = {0, all, 1};
    else if (time - stuckSince > kStay)
      return;
    const bool waitsForPeer =
        Block().broadcast(threadIdx.x == 0 && !part.hasCredit(true) ? 1 : 0) != 0;
    if (!bounded.mayGoOn(part, waitsForPeer ? wait.peer : ~0u,
                         [&] { return missingOfSend(part, wait.peer); }))
      return;
  }
  if (blockIdx.x == 0)
    bounded.endEpoch(part);
}

__global__ void __launch_bounds__(kPartThreads) waitForReceive(const PartWait wait) {
  Part part({wait.state});
  Bounded bounded(wait);
  if (bounded.isTooLate(part))
    return;
  for (;;) {
    // Until the request is connected its words of arrival are not known.
    const bool isConnected = Block().broadcast(threadIdx.x == 0 && part.isConnected()) != 0;
    bool isMissing = !isConnected && part.s->partitions != 0;
    const uint64_t all = isConnected ? part.s->peer.cut.units() : 0;
    // Each thread looks at some words, all of which must be of this epoch.
    for (uint64_t unit = threadIdx.x; unit < all && !isMissing; unit += kPartThreads)
      isMissing = device::acquireWord(&part.s->peer.arrived[unit]) < part.e;
    if (!__syncthreads_or(isMissing))
      break;
    if (!bounded.mayGoOn(part, wait.peer, [&] { return missingOfReceive(part, wait.peer); }))
      return;
  }
  bounded.endEpoch(part);
}

/// started: pinned, for the host: the epoch, which the receiver has started.
__global__ void __launch_bounds__(kPartThreads)
    waitForPeer(const PartWait wait, uint64_t *started) {
  Part part({wait.state});
  Bounded bounded(wait);
  if (threadIdx.x == 0 && device::loadWord(&part.s->done) >= part.e)
    part.misused(Misuse::NoEpoch, 0);
  if (bounded.isTooLate(part))
    return;
  const auto hasStarted = [&] { return part.hasCredit(true); };
  while (Block().broadcast(threadIdx.x == 0 && hasStarted() ? 1 : 0) == 0)
    if (!bounded.mayGoOn(part, wait.peer, [&] {
          return hasStarted()
                     ? interpreter::Obstacle{}
                     : interpreter::Obstacle{interpreter::BlockReason::Credit, 0, wait.peer};
        }))
      return;
  if (threadIdx.x == 0)
    device::releaseWord(started, part.e);
}

/// One thread.
__global__ void startCollective(device::State *state, uint64_t epoch) {
  // The epoch before must have ended, and no other kernel may have begun this one.
  Part part(state);
  if (device::loadWord(&state->done) != epoch - 1 ||
      device::exchangeForAll(&state->epoch, epoch - 1, epoch) != epoch - 1)
    part.misused(Misuse::Active, 0);
}

/// One warp, behind the call of the epoch.
__global__ void endCollective(const PartWait wait, uint64_t epoch) {
  Part part(wait.state);
  Bounded bounded(wait);
  if (bounded.isTooLate(part))
    return;
  const bool isWhole =
      part.e == epoch && device::acquireWord(&part.s->finished) == epoch * part.s->numBlocks;
  if (isWhole) // else its call has failed, or another one is under way, which has been told
    bounded.endEpoch(part);
}

template <class... Arguments>
int launch(void (*kernel)(Arguments...), uint64_t blocks, uint32_t threads, void *stream,
           std::type_identity_t<Arguments>... arguments) {
  cudaLaunchConfig_t config = {};
  config.gridDim = static_cast<unsigned>(blocks);
  config.blockDim = threads;
  config.stream = static_cast<cudaStream_t>(stream);
  return cudaLaunchKernelEx(&config, kernel, arguments...);
}

uint64_t blocksFor(uint64_t units) {
  return units == 0 ? 1 : units < kMostPartBlocks ? units : kMostPartBlocks;
}

} // namespace

int launchPartStart(device::State *state, void *stream) {
  return launch(startPart, 1, 1, stream, state);
}

int launchPartMarks(device::State *state, uint64_t first, uint64_t last, uint64_t units,
                    void *stream) {
  // Few units are stored by the kernel that marks; more by a second one behind it.
  const bool stores = units <= kUnitsMarked;
  const int marked = launch(markPart, 1, kPartThreads, stream, state, first, last, stores);
  return marked != cudaSuccess || stores
             ? marked
             : launch(storePart, blocksFor(units), kPartThreads, stream, state, first, last);
}

int launchCollectiveMarks(device::State *state, uint64_t first, uint64_t last, void *stream) {
  return launch(markPart, 1, kPartThreads, stream, state, first, last, false);
}

int launchCollectiveStart(device::State *state, uint64_t epoch, void *stream) {
  return launch(startCollective, 1, 1, stream, state, epoch);
}

int launchCollectiveEnd(const PartWait &wait, uint64_t epoch, void *stream) {
  return launch(endCollective, 1, 32, stream, wait, epoch);
}

int launchPartPrepare(const PartWait &wait, uint64_t *started, void *stream) {
  return launch(waitForPeer, 1, kPartThreads, stream, wait, started);
}

int launchCopiedMarks(device::State *state, uint64_t epoch, uint64_t first, uint64_t last,
                      void *stream) {
  return launch(publishPart, 1, kWarp, stream, state, epoch, first, last);
}

int launchRefusedMark(device::State *state, uint64_t partition, void *stream) {
  return launch(refusePart, 1, 1, stream, state, partition);
}

int launchSendWait(const PartWait &wait, uint64_t units, void *stream) {
  return launch(waitForSend, blocksFor(units), kPartThreads, stream, wait);
}

int launchReceiveWait(const PartWait &wait, void *stream) {
  return launch(waitForReceive, 1, kPartThreads, stream, wait);
}

int loadParts() {
  const void *const all[] = {reinterpret_cast<const void *>(startPart),
                             reinterpret_cast<const void *>(markPart),
                             reinterpret_cast<const void *>(storePart),
                             reinterpret_cast<const void *>(publishPart),
                             reinterpret_cast<const void *>(refusePart),
                             reinterpret_cast<const void *>(waitForSend),
                             reinterpret_cast<const void *>(waitForReceive),
                             reinterpret_cast<const void *>(waitForPeer),
                             reinterpret_cast<const void *>(startCollective),
                             reinterpret_cast<const void *>(endCollective)};
  // A first launch would load the kernel, and could wait for kernels that run.
  for (const void *kernel : all) {
    cudaFuncAttributes attributes;
    if (const int loaded = cudaFuncGetAttributes(&attributes, kernel); loaded != cudaSuccess)
      return loaded;
  }
  return cudaSuccess;
}

} // namespace occl::cuda
