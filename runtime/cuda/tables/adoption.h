// How an invocation in a stream makes way for other work of its device while it waits: its thread
// blocks leave, all but one, the adopter, who takes the steps of all from then on, in turn. So it
// holds one multiprocessor, and nothing that it needs is launched later.
//
// One word an invocation decides who adopts and who leaves. It is free, or says which invocation
// has an adopter, and how many of its thread blocks have left to that one. A thread block that has
// waited for long changes the word by compare-and-swap:
// - free: it has become the adopter;
// - of its invocation: it has left. It stores where it stood, and ends;
// - of another one, of the same collective, that shares the word: it stays, and asks again later.
// The adopter looks for what has left until the word says that it has finished as many, and then
// frees it, by compare-and-swap too: who leaves meanwhile makes that fail.
#pragma once

#include "runtime/base/host_device.h"
#include "runtime/exec/step/invocation.h"

#include <cstdint>

namespace occl::cuda {

/// Invocations of a collective that can have adopters at once: those of numbers that differ modulo
/// this.
inline constexpr uint32_t kAdoptions = 4;
/// What a thread block has left behind. `owner`: 1 + the invocation's number, stored last; 0 once
/// it is finished.
struct alignas(16) LeftBlock {
  interpreter::BlockContext context;
  uint64_t owner = 0;
};

/// Where the words and contexts of a collective of so many thread blocks lie, in its rank's device
/// memory; all zero at first.
struct Adoptions {
  static constexpr uint64_t kWordBytes = 128; // a cache line of its own
  char *memory = nullptr;

  OCCL_INLINE static constexpr uint64_t strideFor(uint32_t numBlocks) {
    return kWordBytes + numBlocks * sizeof(LeftBlock);
  }
  static constexpr uint64_t bytesFor(uint32_t numBlocks) {
    return kAdoptions * strideFor(numBlocks);
  }
  OCCL_INLINE uint64_t *word(uint64_t number, uint32_t numBlocks) const {
    return reinterpret_cast<uint64_t *>(memory + number % kAdoptions * strideFor(numBlocks));
  }
  OCCL_INLINE LeftBlock *left(uint64_t number, uint32_t numBlocks) const {
    return reinterpret_cast<LeftBlock *>(reinterpret_cast<char *>(word(number, numBlocks)) +
                                         kWordBytes);
  }
};

inline constexpr uint64_t kFreeWord = 0;
/// Invocation `number` has an adopter, and so many thread blocks have left.
OCCL_INLINE uint64_t adoptedWord(uint64_t number, uint32_t numLeft) {
  return 1ull << 63 | (number & 0x7fffffff) << 32 | numLeft;
}

enum class Parting : uint32_t { Adopt, Leave, Stay };
/// What a thread block of invocation `number` that finds `seen` may do, and the word that makes it
/// so.
struct PartingOffer {
  Parting parting;
  uint64_t next;
};
OCCL_INLINE PartingOffer offerParting(uint64_t seen, uint64_t number) {
  if (seen == kFreeWord)
    return {Parting::Adopt, adoptedWord(number, 0)};
  if (seen >> 32 == adoptedWord(number, 0) >> 32)
    return {Parting::Leave, seen + 1};
  return {Parting::Stay, seen};
}

} // namespace occl::cuda
