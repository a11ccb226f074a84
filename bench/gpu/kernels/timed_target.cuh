// A CUDA target that keeps account of where one thread's cycles go, from one call of the target to
// the next: the shared source is measured as it is.
#pragma once

#include "bench/gpu/kernels/kernel_arguments.h"
#include "runtime/exec/cuda/target_cuda.cuh"

#include <cstdint>

namespace occl::bench {

template <class Fold>
class TimedTarget : public interpreter::CudaTarget<Fold, interpreter::Protocols::Simple> {
  using Base = interpreter::CudaTarget<Fold, interpreter::Protocols::Simple>;

public:
  using Base::Base;

  /// Forgets what was measured so far.
  __device__ void restart() {
    account = {};
    last = clock64();
  }
  __device__ const PhaseAccount &measured() const { return account; }

  __device__ bool vote(bool ready) {
    enter(Phase::BeforeVote);
    ready = Base::vote(ready);
    enter(Phase::Vote);
    return ready;
  }
  __device__ void barrier() {
    enter(Phase::BeforeBarrier);
    Base::barrier();
    enter(Phase::Barrier);
  }
  __device__ uint64_t acquire(const uint64_t *word) {
    enter(Phase::BeforeAcquire);
    uint64_t value = Base::acquire(word);
    // The load is over only when its value is used.
    asm volatile("" ::"l"(value) : "memory");
    if (value == ~0ull)
      ++last;
    enter(Phase::Acquire);
    return value;
  }
  __device__ static char *acquire(char *const *pointer) { return Base::acquire(pointer); }
  __device__ void release(uint64_t *word, uint64_t value) {
    enter(Phase::BeforeRelease);
    Base::release(word, value);
    enter(Phase::Release);
  }
  /// All looks, and the vote, count as acquiring.
  __device__ bool arrived(const interpreter::ReadyWord *words, uint32_t first, uint32_t number,
                          uint32_t &missing) {
    enter(Phase::BeforeAcquire);
    bool all = Base::arrived(words, first, number, missing);
    enter(Phase::Acquire);
    return all;
  }
  __device__ bool foldReady(const interpreter::Program &program, const interpreter::ReadyStep &step,
                            const interpreter::FoldPiece *pieces,
                            const interpreter::ReadyWord *words, uint32_t &missing) {
    enter(Phase::BeforeFold);
    bool done = Base::foldReady(program, step, pieces, words, missing);
    enter(Phase::Fold);
    return done;
  }
  /// Looking ahead meanwhile counts as folding.
  __device__ void beginFold(const interpreter::Program &program, const interpreter::ReadyStep &step,
                            const interpreter::FoldPiece *pieces,
                            const interpreter::ReadyWord *words) {
    enter(Phase::BeforeFold);
    Base::beginFold(program, step, pieces, words);
  }
  __device__ void endFold() {
    Base::endFold();
    enter(Phase::Fold);
  }

private:
  /// What lay between the last call and this one was `phase`.
  __device__ void enter(Phase phase) {
    uint64_t now = clock64();
    account.cycles[static_cast<uint32_t>(phase)] += now - last;
    ++account.counts[static_cast<uint32_t>(phase)];
    last = now;
  }

  PhaseAccount account;
  uint64_t last = 0;
};

} // namespace occl::bench
