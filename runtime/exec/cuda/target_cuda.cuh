// The interpreter's target for CUDA: a thread block of the plan is a CUDA thread block. Its first
// warp runs the interpreter: its lanes call ReadyBlock::run() together, each on an object of its
// own with an equal context. The other warps fold: they wait at a barrier for what the first one
// has prepared, so that decoding and polling cost them no issue slots, and a slice two barriers.
// The first warp folds little pieces by itself, in line, and calls nothing: what lives across a
// call lies on the stack, which every acquire drops from the cache.
//
//   if (threadIdx.x < kControlThreads) {
//     CudaTarget<Fold> target(team);
//     ... ReadyBlock(invocation, program, tables, words, target).run(context, ~0u) ...
//     target.dismiss();
//   } else {
//     CudaTarget<Fold>::serve(team);
//   }
//
// Memory order. Data is stored by all threads and published by one: the barrier between the two
// orders the stores before the release, whose scope is the system because the reader may be another
// device. The lanes that poll acquire, and the barrier hands what they saw to the other warps.
#pragma once

#include "runtime/base/system_words.cuh"
#include "runtime/exec/cuda/block_vote.cuh"
#include "runtime/exec/cuda/fold_cuda.cuh"
#include "runtime/exec/cuda/lines_cuda.cuh"
#include "runtime/exec/step/invocation.h"
#include "runtime/exec/step/ready.h"

#include <cstdint>

namespace occl::interpreter {

inline constexpr uint32_t kControlThreads = 32;

/// In shared memory: what the first warp hands to the others.
struct CudaTeam {
  /// What the first warp folds alone.
  static constexpr uint64_t kAloneBytes = 2048;

  /// What is to be folded.
  const FoldPiece *pieces;
  uint32_t numPieces;
  bool isOver; // nothing more will come
  DataType type;
  ReduceOp op;
  uint32_t elementBytes;
  uint32_t finishedWarps; // that have done their share of it

  cuda::ReadyLines lines;
  /// What the other warps are to do: fold what is above, or a step in lines, of pieces or of
  /// scattered chunks, or look at many control words.
  enum class Task : uint8_t { Fold, Lines, ScatteredLines, Look } task;
  const ReadyWord *words; // of the pieces, or to look at
  uint32_t numWords;
  uint32_t missing; // one that has not its value
};

/// Fold: cuda::AnyFold, or cuda::FixedFold for a kernel that serves one type and operation.
///
/// kWhich: Simple or Lines. One kernel with the code of both runs either 1.4 times as slow.
///
/// All of Invocation::places are set before a thread block runs: looking one up costs no
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
  /// What any lane has acquired before is there for all of them: a vote alone orders nothing.
  __device__ static bool vote(bool ready) {
    bool all = __all_sync(~0u, ready) != 0;
    __syncwarp();
    return all;
  }
  __device__ static void barrier() { __syncwarp(); }

  __device__ static uint64_t acquire(const uint64_t *word) { return acquireWord(word); }
  __device__ static char *acquire(char *const *pointer) { return *pointer; }
  __device__ static void release(uint64_t *word, uint64_t value) { releaseWord(word, value); }

  /// All tables of steps are in shared memory.
  template <class T> __device__ static T tableEntry(const T &entry) {
    return *cuda::inShared(&entry);
  }
  __device__ static void setWord(ReadyWord &word, const ReadyWord &value) {
    *cuda::inShared(&word) = value;
  }
  /// So little is folded by the first warp alone: the barriers cost more than they gain.
  __device__ static bool foldsAlone(const Program &program, const ReadyStep &step,
                                    const FoldPiece *pieces) {
    if constexpr (kWhich == Protocols::Lines) {
      return uint32_t(step.unitsEach) * step.numPieces <= kControlThreads;
    } else {
      uint64_t bytes = 0;
      if (step.numPieces > kControlThreads) // a lane has one at least
        return false;
      for (uint32_t i = 0; i < step.numPieces; ++i) {
        if (!Fold::isSimple(pieces[i], program.elementBytes))
          return false;
        // A lane has four copies in flight, but one reduction.
        bytes += pieces[i].elements * program.elementBytes * (pieces[i].numSources > 1 ? 4 : 1);
      }
      return bytes <= CudaTeam::kAloneBytes;
    }
  }
  __device__ __forceinline__ bool foldReady(const Program &program, const ReadyStep &step,
                                            const FoldPiece *pieces, const ReadyWord *words,
                                            uint32_t &missing) {
    if constexpr (kWhich == Protocols::Lines)
      return foldReadyLines(program, step, pieces, words, missing);
    else
      foldReadyPieces(program, step, pieces, words);
    return true;
  }
  __device__ __forceinline__ void foldReadyPieces(const Program &program, const ReadyStep &step,
                                                  const FoldPiece *pieces, const ReadyWord *words) {
    if (!step.isAlone)
      return foldTogether(program, words, pieces, step.numPieces);
    uint32_t stride = 1u << step.pieceBits;
    uint32_t thread = threadIdx.x >> step.pieceBits, numThreads = kControlThreads >> step.pieceBits;
#pragma unroll 1
    for (uint32_t i = threadIdx.x & (stride - 1); i < step.numPieces; i += stride) {
      const FoldPiece piece = tableEntry(pieces[i]);
      Fold::runSimple({words + piece.firstPointer, piece.numSources, piece.numDestinations,
                       piece.misalignment, thread, numThreads},
                      piece.elements, program.elementBytes, piece.divisor);
    }
  }

  /// The other warps fold from beginFold() to endFold().
  static constexpr bool kFoldsBeside = kWhich == Protocols::Simple;
  __device__ __forceinline__ void beginFold(const Program &program, const ReadyStep &step,
                                            const FoldPiece *pieces, const ReadyWord *words) {
    hand(program, words, pieces, step.numPieces);
    meet();
  }
  __device__ void endFold() { meet(); }
  /// In between: whether so much arrives before they have finished; of many words that is not
  /// looked at.
  __device__ __forceinline__ bool arrivesMeanwhile(const ReadyWord *words, uint32_t first,
                                                   uint32_t number) {
    if (number == 0 || number > kControlThreads)
      return number == 0;
    const bool hasWord = threadIdx.x < number;
    const ReadyWord awaited = tableEntry(words[first + (hasWord ? threadIdx.x : 0)]);
    // An acquire drops what the other warps have in the first-level cache: one, when all is there.
    bool here = !hasWord;
    for (;;) {
      here = here || loadWord(awaited.word()) >= awaited.value;
      if (vote(here))
        break;
      if (vote(threadIdx.x != 0 || atomicAdd(cuda::inShared(&team.finishedWarps), 0u) ==
                                       (blockDim.x - kControlThreads) / warpSize))
        return false;
    }
    return vote(!hasWord || acquire(awaited.word()) >= awaited.value);
  }

  /// Looks some times. More words than this warp has lanes are shared out among the others.
  __device__ __forceinline__ bool arrived(const ReadyWord *words, uint32_t first, uint32_t number,
                                          uint32_t &missing) {
    if (number > kControlThreads)
      return allArrived(words, first, number, missing);
    // A lane for each word; lanes without one have nothing to wait for.
    const bool hasWord = threadIdx.x < number;
    const ReadyWord awaited = tableEntry(words[first + (hasWord ? threadIdx.x : 0)]);
    bool here = !hasWord;
#pragma unroll 1
    for (uint32_t look = 0; look < cuda::kReadyLooks; ++look) {
      if (!here)
        here = acquire(awaited.word()) >= awaited.value;
      if (vote(here))
        return true;
    }
    if (!here)
      missing = first + threadIdx.x;
    return false;
  }

  /// For programs that were bound with kDeviceLines, and blocks of at least 480 threads.
  __device__ bool foldScattered(const Program &program, const ReadyStep &step,
                                const FoldPiece *pieces, const ReadyWord *words,
                                uint32_t &missing) {
    if constexpr (kWhich == Protocols::Lines) {
      handLines(program, step, pieces, words, CudaTeam::Task::ScatteredLines);
      return foldLinesTogether(missing);
    }
    return true;
  }

  /// What the other warps do until they are dismissed.
  __device__ static void serve(CudaTeam &team) {
    for (;;) {
      // The first warp hands out one task after the other.
      meet();
      if (team.isOver)
        return;
      if (team.task == CudaTeam::Task::Look) {
        VoteInBlock()(look(team, threadIdx.x - kControlThreads, blockDim.x - kControlThreads));
      } else if constexpr (kWhich == Protocols::Lines) {
        if (team.task == CudaTeam::Task::Lines)
          cuda::foldReadyLines<Fold>(team.lines, threadIdx.x - kControlThreads, VoteInBlock());
        else
          cuda::foldScatteredLines<Fold>(team.lines, threadIdx.x - kControlThreads, VoteInBlock());
      } else {
        runShare(team);
        __syncwarp();
        if (threadIdx.x % warpSize == 0)
          atomicAdd(cuda::inShared(&team.finishedWarps), 1u);
      }
      // All have done their share: the first warp goes on.
      meet();
    }
  }
  /// Once, at the end, by all lanes of the first warp.
  __device__ void dismiss() {
    if (threadIdx.x == 0)
      team.isOver = true;
    meet();
  }

private:
  __device__ bool allArrived(const ReadyWord *words, uint32_t first, uint32_t number,
                             uint32_t &missing) {
    if (threadIdx.x == 0) {
      team.task = CudaTeam::Task::Look;
      team.words = words + first;
      team.numWords = number;
    }
    meet();
    bool all = VoteInBlock()(true);
    meet();
    if (!all && threadIdx.x == 0)
      missing = first + team.missing;
    return all;
  }
  /// What one of so many threads has to look at: whether all has arrived.
  __device__ static bool look(CudaTeam &team, uint32_t thread, uint32_t numThreads) {
    const ReadyWord *words = cuda::inShared(team.words);
    uint32_t next = thread;
#pragma unroll 1
    for (uint32_t look = 0; look < cuda::kReadyLooks; ++look) {
      while (next < team.numWords && acquire(words[next].word()) >= words[next].value)
        next += numThreads;
      if (vote(next >= team.numWords))
        return true;
    }
    if (next < team.numWords)
      atomicExch(&team.missing, next);
    return next >= team.numWords;
  }

  __device__ __forceinline__ bool foldReadyLines(const Program &program, const ReadyStep &step,
                                                 const FoldPiece *pieces, const ReadyWord *words,
                                                 uint32_t &missing) {
    handLines(program, step, pieces, words, CudaTeam::Task::Lines);
    if (!step.isAlone)
      return foldLinesTogether(missing);
    cuda::ReadyLines &task = *cuda::inShared(&team.lines);
    barrier();
    const bool arrived = cuda::foldReadyLines<Fold>(task, threadIdx.x, VoteInWarp());
    barrier(); // the task is no longer in use
    if (!arrived && threadIdx.x == 0)
      missing = task.missing;
    return arrived;
  }
  __device__ __forceinline__ void handLines(const Program &program, const ReadyStep &step,
                                            const FoldPiece *pieces, const ReadyWord *words,
                                            CudaTeam::Task which) {
    cuda::ReadyLines &task = *cuda::inShared(&team.lines);
    if (threadIdx.x == 0) {
      task.step = step;
      task.program = &program;
      task.pieces = pieces;
      task.words = words;
      team.task = which;
    }
  }
  __device__ __forceinline__ bool foldLinesTogether(uint32_t &missing) {
    meet();
    const bool arrived = VoteInBlock()(true);
    meet();
    if (!arrived && threadIdx.x == 0)
      missing = cuda::inShared(&team.lines)->missing;
    return arrived;
  }

  /// Of several folds, each that is so large is done by all threads; smaller ones are shared out
  /// among the warps.
  static constexpr uint64_t kTogetherBytes = 32 << 10;

  /// What the other warps are to fold when they have met with this one.
  __device__ void hand(const Program &program, const ReadyWord *words, const FoldPiece *pieces,
                       uint32_t numPieces) {
    if (threadIdx.x == 0) {
      team.task = CudaTeam::Task::Fold;
      team.finishedWarps = 0;
      team.words = words;
      team.pieces = pieces;
      team.numPieces = numPieces;
      team.elementBytes = static_cast<uint32_t>(program.elementBytes);
      team.type = program.type;
      team.op = program.op;
    }
  }
  __device__ void foldTogether(const Program &program, const ReadyWord *words,
                               const FoldPiece *pieces, uint32_t numPieces) {
    hand(program, words, pieces, numPieces);
    meet();
    meet();
  }

  struct VoteInWarp {
    __device__ bool operator()(bool ready) const { return vote(ready); }
  };
  struct VoteInBlock {
    __device__ bool operator()(bool ready) const { return cuda::allOfBlock(ready); }
  };

  /// All warps. It has a number of its own: they come from different places in the code.
  __device__ static void meet() { asm volatile("barrier.sync 1;" ::: "memory"); }

  /// Which folds of a step a thread helps with, and as which of how many.
  struct Share {
    uint32_t first, stride, thread, numThreads;
  };
  __device__ static Share shareOf(const CudaTeam &team) {
    uint32_t n = team.numPieces, thread = threadIdx.x - kControlThreads;
    uint32_t numThreads = blockDim.x - kControlThreads;
    if (n == 1 || team.pieces[0].elements * team.elementBytes >= kTogetherBytes)
      return {0, 1, thread, numThreads};
    uint32_t warp = thread / warpSize, lane = thread % warpSize, warps = numThreads / warpSize;
    if (n >= warps)
      return {warp, warps, lane, static_cast<uint32_t>(warpSize)};
    uint32_t helpers = (warps - warp % n + n - 1) / n;
    return {warp % n, n, warp / n * warpSize + lane, helpers * warpSize};
  }

  __device__ static void runShare(const CudaTeam &team) {
    Share share = shareOf(team);
    const FoldPiece *pieces = cuda::inShared(team.pieces);
    // Of large ones thread blocks begin with others, so that not all go to the same peer at once.
    const uint32_t turned = share.stride == 1 ? blockIdx.x % team.numPieces : 0;
#pragma unroll 1
    for (uint32_t i = share.first; i < team.numPieces; i += share.stride) {
      uint32_t next = i + turned;
      const FoldPiece &piece = pieces[next < team.numPieces ? next : next - team.numPieces];
      cuda::FoldOperands operands = {team.words + piece.firstPointer,
                                     piece.numSources,
                                     piece.numDestinations,
                                     piece.misalignment,
                                     share.thread,
                                     share.numThreads};
      if (piece.numSources == 1 && piece.divisor <= 1)
        cuda::copy(operands, piece.elements * team.elementBytes);
      else
        Fold::run(team.type, team.op, operands, piece.elements, piece.divisor);
    }
  }

  CudaTeam &team;
};

} // namespace occl::interpreter
