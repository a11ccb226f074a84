// What the host tells the slice's kernels, and what they report.
#pragma once

#include "bench/gpu/kernels/block_report.h"
#include "runtime/cuda/tables/limits.h"

#include <cstdint>

namespace occl::bench {

/// Arena blocks that a rank uses in turn.
inline constexpr uint32_t kArenaRing = 4;
using cuda::kMaxRanks;
using cuda::kMaxStepOperands;
using cuda::kTableBytes;
using cuda::kThreads;

/// What a thread did between two calls of the target, named by the later one; and the calls.
enum class Phase : uint32_t {
  BeforeAcquire,
  Acquire,
  BeforeVote,
  Vote,
  BeforeBarrier,
  Barrier,
  BeforeFold,
  Fold,
  BeforeRelease,
  Release
};
inline constexpr uint32_t kNumPhases = 10;

struct PhaseAccount {
  uint64_t cycles[kNumPhases] = {};
  uint32_t counts[kNumPhases] = {};
};

/// One rank as its device sees it.
struct RankArguments {
  const char *images = nullptr; // of its blocks, imageStride apart
  /// By block, controlsStride apart: how many control words in its rank's arena block only this
  /// thread block and its peers use, and where these lie.
  const uint64_t *controls = nullptr;
  char *buffers[3] = {nullptr, nullptr, nullptr};
  char *arenas[kMaxRanks] = {};          // where rank r's ring begins
  uint64_t arenaStrides[kMaxRanks] = {}; // from one of its arena blocks to the next
  /// Direct programs.
  char *peerBuffers[kMaxRanks * 3] = {};
  uint64_t *begun[kMaxRanks] = {}; // see begunWord
  uint64_t *ended = nullptr;       // thread blocks of this rank, of all invocations so far
  uint32_t *ordinals = nullptr;    // by block: the next invocation's number
  BlockReport *reports = nullptr;  // by block
  PhaseAccount *account = nullptr; // launchTimed: of its first block
};

/// In the memory of the rank that waits: invocations that `writer` has begun, one word for each of
/// its thread blocks.
#ifdef __CUDACC__
__host__ __device__
#endif
    inline uint64_t *
    begunWord(uint64_t *begun, uint32_t block, uint32_t writer) {
  return begun + (block * kMaxRanks + writer) * 8;
}

struct LoopArguments {
  RankArguments ranks[kMaxRanks]; // those of this device, by blockIdx.y
  uint64_t imageStride = 0, controlsStride = 0;
  uint32_t numRanks = 0; // of the group
  uint32_t firstInvocation = 0;
  uint32_t invocations = 0;
  uint32_t warmUp = 0;   // invocations before the clock starts
  bool isDirect = false; // a program without messages, on each other's buffers
  uint32_t observer = 0; // launchTimed: the thread that keeps account
  /// A block that makes no progress for so many cycles gives up.
  uint64_t patience = 0;
};

/// A hand-written kernel's view of the group.
struct ProbeArguments {
  char *inputs[kMaxRanks] = {};
  char *outputs[kMaxRanks] = {};
  char *staging[kMaxRanks] = {}; // zeroed at first
  uint64_t *flags[kMaxRanks] = {};
  BlockReport *reports = nullptr;
  uint64_t elements = 0; // floats, a multiple of 4 * ranks * blocks
  uint32_t numRanks = 0;
  uint32_t rank = 0;
  uint32_t firstInvocation = 0;
  uint32_t invocations = 0;
  uint32_t warmUp = 0;
  uint64_t patience = 0;
};

/// Enqueue one launch on the current device: floats and sum, or any type and operation; without or
/// with lines (protocols LL and LL128). Return a cudaError_t.
int launchFixed(const LoopArguments &arguments, uint32_t blocks, uint32_t localRanks, void *stream);
int launchAny(const LoopArguments &arguments, uint32_t blocks, uint32_t localRanks, void *stream);
int launchFixedLines(const LoopArguments &arguments, uint32_t blocks, uint32_t localRanks,
                     void *stream);
int launchAnyLines(const LoopArguments &arguments, uint32_t blocks, uint32_t localRanks,
                   void *stream);

/// Floats and sum, without lines, keeping account.
int launchTimed(const LoopArguments &arguments, uint32_t blocks, uint32_t localRanks, void *stream);

enum class Probe : uint8_t { OneShotLL, OneShotPush, OneShotPull, TwoShotDirect };
int launchProbe(Probe probe, const ProbeArguments &arguments, uint32_t blocks, void *stream);

} // namespace occl::bench
