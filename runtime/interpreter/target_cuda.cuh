// The interpreter's target for CUDA: a thread block of the plan is a CUDA thread block. Its first
// warp runs the interpreter: the lanes call stepBlock together, each with its own equal copy of the
// context. The other warps only fold: they wait at a barrier for what the first one has prepared,
// so that decoding and polling cost them no issue slots, and a slice two barriers.
//
//   if (threadIdx.x < kControlThreads) {
//     CudaTarget<Fold> target(team);
//     ... stepBlock(invocation, blockIdx.x, context, target) ...
//     target.dismiss();
//   } else {
//     CudaTarget<Fold>::serve(team);
//   }
//
// Memory order. Data is stored by all threads and published by one: the barrier between the two
// orders the stores before the release, whose scope is the system because the reader may be another
// device. The lanes that poll acquire, and the barrier hands what they saw to the other warps.
#pragma once

#include "runtime/interpreter/fold_cuda.cuh"
#include "runtime/interpreter/invocation.h"
#include "runtime/interpreter/lines_cuda.cuh"

#include <cstdint>

namespace occl::interpreter {

inline constexpr uint32_t kControlThreads = 32;

/// In shared memory: what the first warp hands to the others.
struct CudaTeam {
  /// Operands of the largest instruction that this target executes.
  static constexpr uint32_t kMaxOperands = cuda::LineTask::kMaxOperands;

  char *addresses[kMaxOperands];
  cuda::LineTask lines;
  bool isOver; // nothing more will come
  uint64_t elements;
  uint64_t divisor;
  uint32_t numSources;
  uint32_t numDestinations;
  uint32_t elementBytes;
  DataType type;
  ReduceOp op;
};

/// Fold: cuda::AnyFold, or cuda::FixedFold for a kernel that serves one type and operation.
///
/// kWhich: Simple or Lines. One kernel with the code of both runs either 1.4 times as slow.
///
/// All addresses in Invocation::arenas are set before the kernel starts: looking one up costs no
/// system-wide acquire.
template <class Fold, Protocols kWhich> class CudaTarget {
public:
  static constexpr Protocols kProtocols = kWhich;
  /// The first warp.
  __device__ explicit CudaTarget(CudaTeam &team) : team(team) {
    if (threadIdx.x == 0)
      team.isOver = false;
  }

  __device__ static uint32_t thread() { return threadIdx.x; }
  __device__ static uint32_t numThreads() { return kControlThreads; }
  __device__ static bool vote(bool ready) { return __all_sync(~0u, ready) != 0; }
  __device__ static void barrier() { __syncwarp(); }

  __device__ static uint64_t acquire(const uint64_t *word) {
    uint64_t value;
    asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
    return value;
  }
  __device__ static char *acquire(char *const *pointer) { return *pointer; }
  __device__ static void release(uint64_t *word, uint64_t value) {
    asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
  }

  __device__ char **pointers() { return team.addresses; }

  __device__ void fold(const Program &program, uint32_t numSources, uint32_t numDestinations,
                       uint64_t elements, uint64_t divisor) {
    if (elements * program.elementBytes <= kAloneBytes) {
      run(program.type, program.op, program.elementBytes,
          {team.addresses, numSources, numDestinations, threadIdx.x, kControlThreads}, elements,
          divisor);
      return;
    }
    if (threadIdx.x == 0) {
      team.elements = elements;
      team.divisor = divisor;
      team.numSources = numSources;
      team.numDestinations = numDestinations;
      team.elementBytes = static_cast<uint32_t>(program.elementBytes);
      team.type = program.type;
      team.op = program.op;
    }
    meet();
    runShare(team);
    meet();
  }

  /// For programs that were bound with kDeviceLines, and blocks of at least 480 threads.
  static constexpr bool kLinesInRegisters = true;
  __device__ cuda::LineTask &lineTask() { return team.lines; }
  /// The task is filled in. False: a source has not arrived, and nothing was stored.
  __device__ bool foldLines() {
    barrier();
    if (team.lines.numUnits() <= kControlThreads)
      return cuda::FoldLines<Fold>::run(team.lines, VoteInWarp());
    meet();
    bool arrived = cuda::FoldLines<Fold>::run(team.lines, VoteInBlock());
    meet();
    return arrived;
  }

  /// What the other warps do until they are dismissed.
  __device__ static void serve(CudaTeam &team) {
    for (;;) {
      meet();
      if (team.isOver)
        return;
      if constexpr (kWhich == Protocols::Lines)
        cuda::FoldLines<Fold>::run(team.lines, VoteInBlock());
      else
        runShare(team);
      meet();
    }
  }
  /// Once, at the end, by all lanes of the first warp.
  __device__ void dismiss() {
    if (threadIdx.x == 0)
      team.isOver = true;
    meet();
  }

  static constexpr bool kHasDoorbells = false;
  /// Programs are bound without.
  static constexpr bool kHasReferences = false;

private:
  /// So little is folded by the first warp alone: the barriers cost more than they gain.
  static constexpr uint64_t kAloneBytes = 1024;

  struct VoteInWarp {
    __device__ bool operator()(bool ready) const { return vote(ready); }
  };
  struct VoteInBlock {
    __device__ bool operator()(bool ready) const {
      uint32_t all;
      asm volatile("{ .reg .pred in, out; setp.ne.u32 in, %1, 0; barrier.red.and.pred out, 2, in; "
                   "selp.u32 %0, 1, 0, out; }"
                   : "=r"(all)
                   : "r"(static_cast<uint32_t>(ready))
                   : "memory");
      return all != 0;
    }
  };

  /// All warps. It has a number of its own: they come from different places in the code.
  __device__ static void meet() { asm volatile("barrier.sync 1;" ::: "memory"); }

  __device__ static void runShare(const CudaTeam &team) {
    run(team.type, team.op, team.elementBytes,
        {team.addresses, team.numSources, team.numDestinations, threadIdx.x, blockDim.x},
        team.elements, team.divisor);
  }

  __device__ static void run(DataType type, ReduceOp op, uint64_t elementBytes,
                             const cuda::FoldOperands &operands, uint64_t elements,
                             uint64_t divisor) {
    if (operands.numSources == 1 && divisor <= 1)
      cuda::copy(operands, elements * elementBytes);
    else
      Fold::run(type, op, operands, elements, divisor);
  }

  CudaTeam &team;
};

} // namespace occl::interpreter
