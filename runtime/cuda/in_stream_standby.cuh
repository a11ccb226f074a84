// The kernel that is there already: straight blocks that execute an invocation as
// in_stream_straight.cuh has it, and then wait for the host's next call of the collective instead
// of ending. Tables and operands stay where they are. The clerks wait, each at its bell
// (standby_words.h); the first thread block's leads.
#pragma once

#include "runtime/cuda/in_stream_straight.cuh"
#include "runtime/cuda/standby_words.h"

#include <cstdint>

namespace occl::cuda {

/// Nanoseconds after which a kernel leaves between two calls, however quickly these come: who waits
/// for the device, to free memory, say, is to have it.
inline constexpr uint64_t kLongestStay = 20'000'000;

/// What a clerk polls.
struct BellRope {
  const uint64_t *word; // of this lane; null: none
  uint64_t mark;

  /// Whether the bell has been rung; then `turn` is the call. All lanes.
  __device__ bool isRung(uint64_t word, Turn &turn) const {
    const bool isRight = laneOfWarp() >= Bell::kWords || markIn(word) == mark;
    if (!__all_sync(~0u, isRight))
      return false;
    const uint64_t value = valueIn(word);
    turn.buffers[0] = reinterpret_cast<char *>(__shfl_sync(~0u, value, 0));
    turn.buffers[1] = reinterpret_cast<char *>(__shfl_sync(~0u, value, 1));
    turn.number = __shfl_sync(~0u, value, 2);
    return true;
  }
  /// Acquires, so that the input is not looked for in the first-level cache.
  __device__ uint64_t look() const { return word != nullptr ? acquireWord(word) : 0; }
};

/// Who leads wants to leave. Whether it does; if not, a call has come.
__device__ inline bool leaveUnlessRung(const StandbyArguments &arguments, const BellRope &rope,
                                       Turn &turn) {
  if (laneOfWarp() == 0)
    storeWord(arguments.presence, presenceWord(arguments.session, Presence::Leaving));
  __syncwarp();
  asm volatile("fence.sc.sys;" ::: "memory");
  const bool stays = rope.isRung(rope.look(), turn);
  if (laneOfWarp() == 0) {
    storeWord(arguments.presence,
              presenceWord(arguments.session, stays ? Presence::There : Presence::Gone));
    if (!stays)
      storeWord(arguments.relay, arguments.session);
  }
  return !stays;
}

/// The clerk, until the call with that ticket comes. False: the kernel leaves.
__device__ inline bool awaitTurn(const StandbyArguments &arguments, uint64_t ticket, uint64_t begun,
                                 Turn &turn) {
  constexpr uint32_t kPollsPerLook = 64;
  const uint32_t lane = laneOfWarp();
  const bool leads = blockIdx.x == 0;
  const WaitBound &bound = arguments.first.bound;
  BellRope rope = {nullptr, bellMark(ticket)};
  if (lane < Bell::kWords)
    rope.word = &arguments.bells[blockIdx.x].words[lane];
  else if (lane == Bell::kWords && !leads)
    rope.word = arguments.relay;
  const uint64_t since = deviceClock();
  for (uint32_t polls = 1;; ++polls) {
    const uint64_t word = rope.look();
    if (rope.isRung(word, turn))
      return true;
    if (__any_sync(~0u, lane == Bell::kWords && !leads && word == arguments.session))
      return false;
    const uint64_t now = __shfl_sync(~0u, deviceClock(), 0);
    const bool isLong = now - since > arguments.patience || now - begun > kLongestStay;
    if (leads && isLong)
      return !leaveUnlessRung(arguments, rope, turn);
    if (polls % kPollsPerLook != 0)
      continue;
    const uint32_t abort = *static_cast<const volatile uint32_t *>(&bound.host->abort);
    if (__any_sync(~0u, abort != 0 || now - since > bound.timeout))
      return false;
  }
}

struct StandbyShared {
  StraightShared straight;
  Turn turn;
  bool isOver;
};

/// The clerk's part: all turns.
__device__ inline void keepBooks(StandbyShared &shared, const StandbyArguments &arguments) {
  const InStreamArguments &first = arguments.first;
  const uint64_t begun = deviceClock();
  Turn turn = turnOf(first);
  for (EndWords ended = first.ended; runClerk(shared.straight, first, turn, ended);) {
    ++ended.ticket;
    const uint64_t next = turn.number + 1;
    const bool goesOn = awaitTurn(arguments, ended.ticket, begun, turn);
    turn.isNext = turn.number == next;
    if (laneOfWarp() == 0) {
      shared.turn = turn;
      shared.isOver = !goesOn;
    }
    __syncthreads();
    if (!goesOn)
      return;
  }
}

template <class Fold, bool kWide>
__global__ void __launch_bounds__(kThreads)
    standBy(const __grid_constant__ StandbyArguments arguments) {
  __shared__ StandbyShared shared;
  const InStreamArguments &first = arguments.first;
  const StraightImages &layout = first.collective.straight;
  const uint32_t numWorkers = blockDim.x - 32;
  if (threadIdx.x >= numWorkers)
    return keepBooks(shared, arguments);
  const char *image = layout.images + uint64_t(blockIdx.x) * layout.stride;
  const bool makesWords = threadIdx.x / 32 * 32 < layout.maxOperands;
  loadTables(shared.straight, layout, image, numWorkers);
  Turn turn = turnOf(first);
  Making making;
  if (makesWords)
    making = loadMaking(first.collective, image);
  for (;;) {
    bool ok = !makesWords || makeWords(shared.straight, first, turn, making);
    ok = meetWorkers(numWorkers, ok) &&
         takeSteps<Fold, kWide>(shared.straight, first, image, numWorkers);
    if (!interpreter::cuda::allOfBlock(ok))
      return;
    if (makesWords) // before anybody calls
      making = loadMaking(first.collective, image);
    __syncthreads();
    if (shared.isOver)
      return;
    turn = shared.turn;
  }
}

template <class Fold, bool kWide>
int launchStandbyOf(const StandbyArguments &arguments, cudaStream_t stream) {
  const DeviceCollective &collective = arguments.first.collective;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(collective.numBlocks);
  config.blockDim = dim3(collective.straight.numThreads + 32);
  config.stream = stream;
  return cudaLaunchKernelEx(&config, standBy<Fold, kWide>, arguments);
}
template <class Fold>
int launchStandbyKernel(const StandbyArguments &arguments, cudaStream_t stream) {
  return arguments.first.collective.straight.isWide
             ? launchStandbyOf<Fold, true>(arguments, stream)
             : launchStandbyOf<Fold, false>(arguments, stream);
}
template <class Fold> int loadStandbyKernel() {
  int error = loadKernel<standBy<Fold, false>>();
  return error != cudaSuccess ? error : loadKernel<standBy<Fold, true>>();
}

} // namespace occl::cuda
