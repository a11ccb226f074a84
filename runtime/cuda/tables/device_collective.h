// What executes a collective on a device: plain structures that the host fills in and
// kernels read. In-stream execution hands a DeviceCollective to its kernel as an argument; a
// resident one keeps an array of them.
//
// Ranks. Each has one allocation of device memory, its arena, which all other ranks map. At its
// begin lie the records, one for each of the communicator's connectors and rank that writes it;
// behind them the slots of transfers, arena blocks, scratch and the memory of occlMemAlloc.
//
// Connectors have numbers that all ranks know, their slots (ordered_connectors.h). Rank w stores in
// record (slot, w) of every other rank's arena where its arena blocks lie. Ranks come in any order:
// who executes an invocation polls for the records of the others as its first wait.
//
// Invocations are numbered from 0, in the order in which a rank executes them; the next one of the
// same connectors begins on a rank when the one before is finished there. Invocation n uses arena
// block n % ring of each rank, or with protocol Simple the one that all share: blocks at a distance
// of 0 (ringStride).
// Nothing is cleared: words and flags of an invocation are larger than those of all before
// (wordBaseOf, flagBaseOf). When a rank begins invocation n it stores n + 1 into `begun` of its
// records. Before it does anything else it waits until all ranks
// - have begun n + 1 - lead, and so have finished n - lead, which may have used the same arena
//   block: lead is at most `ring`, and 1 with a block that all share;
// - of a direct program: have begun n, so that their buffers may be accessed, and have said where
//   these are. There are kTurns places for that, see ordered_connectors.h.
#pragma once

#include "runtime/base/data_type.h"
#include "runtime/base/host_device.h"
#include "runtime/cuda/tables/adoption.h"
#include "runtime/cuda/tables/limits.h"

#include <cstdint>

namespace occl::cuda {

/// Connectors that a communicator has on devices: those of calls in streams, and of each lane.
inline constexpr uint32_t kMostConnectors = 1 + 4 * 64;
/// The most arena blocks of a collective.
inline constexpr uint32_t kMaxRing = 4;
inline constexpr uint64_t kBlockAlignment = 256;
/// With ordered connectors an invocation's words and flags differ by less than 2^kWordShift and
/// kOrderedFlags, and a block is cleared once in so many uses.
inline constexpr uint32_t kWordShift = 20;
inline constexpr uint32_t kOrderedFlags = 256;
inline constexpr uint32_t kUsesUncleared = 1u << 22;
/// Thread blocks of a call, at most.
inline constexpr uint32_t kOrderedOrdinals = 128;

/// Places for what a rank says of an invocation, used in turn: see ordered_connectors.h.
inline constexpr uint32_t kTurns = 8;

/// What one rank tells another of one collective. Zero: nothing yet. Control words, each with one
/// writer.
struct alignas(128) RankRecord {
  /// 1 + where the writer's arena blocks begin, in bytes from the begin of its arena.
  uint64_t where;
  /// Invocations begun.
  uint64_t begun;
  /// Direct programs: by turn, of input and output: see bufferWord().
  uint64_t buffers[kTurns][2];
  /// By turn, see signatureWord(); in the record of the own rank the place of the call's shape.
  uint64_t signatures[kTurns];
  /// What the writer's resident daemon has come to: resident::announcement().
  uint64_t announced;
};

/// In which invocation a buffer lies so many bytes (below 2^40) from the begin of its rank's arena:
/// the low bits of the invocation's number above them, and a bit that no word has in which nothing
/// was said.
inline constexpr uint32_t kBufferNumberBits = 23;
OCCL_INLINE uint64_t bufferWord(uint64_t number, uint64_t offset) {
  return 1ull << 63 | (number & ((1u << kBufferNumberBits) - 1)) << 40 | offset;
}
/// Whether the word is of that invocation. The low bits come again: see renewsBuffers().
OCCL_INLINE bool isOfInvocation(uint64_t word, uint64_t number) {
  return word >> 40 == bufferWord(number, 0) >> 40;
}
OCCL_INLINE uint64_t offsetIn(uint64_t bufferWord) { return bufferWord & ((1ull << 40) - 1); }
/// Whether a rank says where buffers are though nobody accesses them: so what lies in a place is
/// replaced twice before its invocation's low bits come again.
OCCL_INLINE bool renewsBuffers(uint64_t number) {
  return (number & ((1u << (kBufferNumberBits - 1)) - 1)) < kTurns;
}

/// Which invocation has that signature: what all ranks must call alike.
OCCL_INLINE uint64_t signatureWord(uint64_t number, uint16_t signature) {
  return (number + 1) << 16 | signature;
}
OCCL_INLINE bool isSignatureOf(uint64_t word, uint64_t number) {
  return word >> 16 == ((number + 1) & 0xffffffffffff);
}

/// Bytes of an arena that the records take.
inline constexpr uint64_t kRecordBytes = uint64_t(kMostConnectors) * kMaxRanks * sizeof(RankRecord);

/// In whichever rank's arena: what rank `writer` says of a collective.
OCCL_INLINE RankRecord *recordIn(char *arena, uint32_t slot, uint32_t writer) {
  return reinterpret_cast<RankRecord *>(arena) + uint64_t(slot) * kMaxRanks + writer;
}

/// The tables of thread blocks that are straight (runtime/exec/step/straight.h), in-stream
/// kernels' own. Those of block b lie b * stride bytes from `images`, in each at the same offsets:
/// steps, then pieces, operands and obstacles.
struct StraightImages {
  const char *images = nullptr; // null: some thread block of the rank is not straight
  uint32_t stride = 0;
  uint16_t piecesAt = 0;
  uint16_t operandsAt = 0; // up to there in shared memory
  uint16_t obstaclesAt = 0;
  uint16_t maxSteps = 0;    // a step without pieces comes after the last one of a block with fewer
  uint16_t maxOperands = 0; // likewise, one without a place
  uint16_t numThreads = 0;  // of the largest step, a multiple of 32
  bool isWide = false;      // LL128
};
/// The place of an operand that is none.
inline constexpr uint32_t kNoPlace = ~0u;

/// What a kernel folds: sums (and averages, which divide them) of one type, or anything.
enum class Folds : uint8_t { FloatSum, Bfloat16Sum, Any };
OCCL_INLINE Folds foldsOf(DataType type, ReduceOp op) {
  if (op != ReduceOp::Sum && op != ReduceOp::Avg)
    return Folds::Any;
  return type == DataType::Float32    ? Folds::FloatSum
         : type == DataType::Bfloat16 ? Folds::Bfloat16Sum
                                      : Folds::Any;
}

/// A collective of one rank, bound. The pointers are to device memory as this rank maps it.
struct DeviceCollective {
  /// The image of thread block b (block_image.h) lies b * imageStride bytes from here.
  const char *images = nullptr;
  uint32_t imageStride = 0;
  uint32_t numBlocks = 0;
  uint32_t slot = 0;
  uint32_t rank = 0;
  uint32_t numRanks = 0;
  uint32_t ring = 1; // a power of two
  /// The program accesses other ranks' buffers.
  bool isDirect = false;
  /// Other threads move what this rank stores to ranks of other machines: when it begins a call
  /// they must see all of the call before.
  bool isAcrossMachines = false;
  /// Of protocol LL or LL128: for kernels with Protocols::Lines.
  bool hasLines = false;
  /// Of which kernels.
  Folds folds = Folds::Any;
  /// For Folds::Any.
  DataType type = DataType::Float32;
  ReduceOp op = ReduceOp::Sum;
  StraightImages straight;
  char *arenas[kMaxRanks] = {};
  /// Of each rank, from RankRecord::where on, modulo 2^64, as they may lie in other memory: the
  /// first block of programs like this one, and scratch.
  uint64_t ringOffsets[kMaxRanks] = {};
  uint64_t scratchOffsets[kMaxRanks] = {};
  /// From one block to the next. 0: all invocations have one, whatever their numbers.
  uint64_t ringStride = 0;
  /// This rank's progress words of an arena block, from the block's begin.
  uint64_t progressOffset = 0;
  /// Of this rank, by thread block: the number of the next invocation.
  uint64_t *ordinals = nullptr;
  uint32_t numOrdinals = 0;
  /// Of kind, plan, count, type, operation and root.
  uint16_t signature = 0;
  /// A rank may begin invocation n when all others have begun n + 1 - lead; at most `ring`, and 1
  /// with a shared block, unless it has nothing to do there.
  uint32_t lead = 1;
  /// So many bytes of each block of programs of LL are lines. Of this rank: where those of the
  /// first block lie, as ringOffsets, and from there to the next.
  uint64_t linesOffset = 0, linesStride = 0, linesBytes = 0;
  /// Of a resident daemon: the last call before which this rank has
  /// cleared lines.
  uint64_t *cleared = nullptr;
  /// In-stream kernels' own; of one thread block, none.
  Adoptions adoptions;

  /// Which of its arena blocks an invocation uses, and how many before it have used that.
  /// Without divisions, which take a device longer than a load.
  OCCL_INLINE uint64_t blockOf(uint64_t number) const { return number & (ring - 1); }
  /// Where it begins, as ringOffsets.
  OCCL_INLINE uint64_t blockOffset(uint64_t number, uint32_t r) const {
    return ringOffsets[r] + blockOf(number) * ringStride;
  }
  OCCL_INLINE uint64_t earlierIn(uint64_t number) const { return number >> (ring / 2); }
  /// Which of the places in the records of the other ranks is an invocation's.
  OCCL_INLINE static uint32_t turnOf(uint64_t number) { return number & (kTurns - 1); }
  /// Whether a rank that has begun so many invocations lets this one begin `number`.
  OCCL_INLINE bool letsBegin(uint64_t begun, uint64_t number) const {
    return begun + lead >= number + 2;
  }
  /// Invocation::wordBase and flagBase.
  OCCL_INLINE uint64_t wordBaseOf(uint64_t number) const { return (number + 1) << kWordShift; }
  OCCL_INLINE uint64_t flagBaseOf(uint64_t number) const {
    return earlierIn(number) * kOrderedFlags;
  }
  /// Whether this rank clears the lines of the block that an invocation
  /// has used, before it says that the next one begins. So each block is cleared long before flags,
  /// of which LL has 32 bits, come again.
  OCCL_INLINE bool clearsLines(uint64_t number) const {
    return (earlierIn(number) & (kUsesUncleared - 1)) == kUsesUncleared - 1;
  }
};
static_assert(kMaxRing == 4, "see earlierIn()");
static_assert(uint64_t(kUsesUncleared) * kOrderedFlags <= 1ull << 31, "flags of LL come again");

} // namespace occl::cuda
