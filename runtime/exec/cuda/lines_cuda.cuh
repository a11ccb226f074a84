// Slices of protocols LL and LL128 on CUDA devices: looked at, folded and stored by all threads of
// a block at once, each with 16 bytes of every source in registers. Nothing is stored before all of
// the slice's lines have arrived.
//
// Memory order. Neither protocol needs an acquire, or a release, which would wait until all stores
// have arrived.
//
// LL: data and flag are one word of 64 bits, stored and loaded as an element of a vector of two.
// The PTX memory model treats a vector access as one access for each element, and such a word does
// not come apart.
//
// LL128: eight neighbouring lanes store a line by one instruction, 16 bytes each, the flag last,
// and load it so. Nothing that NVIDIA documents orders the words of a line. What NCCL relies on,
// and so do we, is that a store of 128 bytes reaches another device in ascending order of
// addresses, which its authors have verified for NVLink (github.com/NVIDIA/nccl, issue 786). It
// says nothing of loads: those of the look that found the flag may have met data of before. So when
// all lanes of a warp have seen their flags they load the data again, as NCCL does
// (src/device/prims_ll128.h); and where not all ranks are joined by NVLink, LL128 is not used
// (runtime/cuda/device/peer_paths.h).
#pragma once

#include "runtime/exec/cuda/fold_cuda.cuh"
#include "runtime/exec/step/slice.h"

#include <cstdint>

namespace occl::interpreter::cuda {

/// 16 bytes of lines, as two words of 64 bits.
__device__ __forceinline__ uint4 loadOfLine(const char *address) {
  uint64_t low, high;
  asm volatile("ld.volatile.global.v2.u64 {%0, %1}, [%2];"
               : "=l"(low), "=l"(high)
               : "l"(address)
               : "memory");
  return {static_cast<uint32_t>(low), static_cast<uint32_t>(low >> 32), static_cast<uint32_t>(high),
          static_cast<uint32_t>(high >> 32)};
}
__device__ __forceinline__ void storeOfLine(char *address, const uint4 &raw) {
  asm volatile("st.volatile.global.v2.u64 [%0], {%1, %2};" ::"l"(address),
               "l"(raw.x | static_cast<uint64_t>(raw.y) << 32),
               "l"(raw.z | static_cast<uint64_t>(raw.w) << 32)
               : "memory");
}

/// An operand of a slice: a row of lines, or where the chunks of a buffer begin.
struct LineOperand {
  char *address;
  uint64_t flag; // 0: a buffer
  bool isScratch;
};

/// A slice as the first warp hands it to the others.
struct LineTask {
  static constexpr uint32_t kMaxOperands = 64;
  static constexpr uint32_t kNothing = ~0u;

  const Program *program;
  const BoundInstruction *instruction;
  uint64_t tile;
  uint64_t begin, end; // elements of the message
  uint64_t divisor;
  uint32_t numSources, numDestinations;
  LineOperand operands[kMaxOperands]; // sources, then destinations
  uint32_t missing;                   // a source that has not arrived, after a failure

  __device__ uint64_t bytes() const { return (end - begin) * program->elementBytes; }
  __device__ bool isWide() const { return program->line.bytes != kWordLineBytes; }

  /// Of 16 bytes in lines, a unit for each thread. An empty slice has one line too.
  __device__ uint32_t numUnits() const {
    uint64_t data = bytes() == 0 ? 1 : bytes();
    if (!isWide())
      return static_cast<uint32_t>((data + 7) / 8);
    uint32_t lineData = program->line.dataBytes, unitsPerLine = program->line.bytes / 16;
    return static_cast<uint32_t>((data + lineData - 1) / lineData) * unitsPerLine;
  }

  /// The address of an element of a buffer, `element` elements after the message's begin.
  __device__ char *inContiguous(const LineOperand &operand, uint64_t element) const {
    return operand.address + (tile * program->tileElements + element) * program->elementBytes;
  }
  __device__ char *elementOf(const LineOperand &operand, uint64_t element) const {
    if (instruction->contiguous)
      return inContiguous(operand, element);
    uint64_t packed = 0;
    detail::ChunkCursor cursor(*program, instruction->extent);
    for (uint32_t i = 0;; ++i, cursor.next()) {
      uint64_t length = detail::inTile(cursor.size(), tile, program->tileElements);
      if (element < packed + length || i + 1 == instruction->count) {
        uint64_t in = tile * program->tileElements + element - packed;
        uint64_t at = operand.isScratch ? i * program->scratchStride : cursor.position;
        return operand.address + (at + in) * program->elementBytes;
      }
      packed += length;
    }
  }
};

/// The unit of one thread: one word of 8 bytes of data beside flags (LL), or two, of which the last
/// one of a line is the flag (LL128).
class LineUnit {
public:
  __device__ LineUnit(const LineTask &task, uint32_t unit)
      : task(task), unit(unit), wide(task.isWide()), inRange(unit < task.numUnits()) {
    uint32_t unitsPerLine = task.program->line.bytes / 16;
    uint32_t line = wide ? unit / unitsPerLine : 0, inLine = wide ? unit - line * unitsPerLine : 0;
    hasFlag = !wide || inLine + 1 == unitsPerLine;
    uint64_t offset =
        wide ? line * static_cast<uint64_t>(task.program->line.dataBytes) + inLine * 16 : unit * 8;
    begin = detail::smaller(offset, task.bytes());
    bytes = static_cast<uint32_t>(detail::smaller(task.bytes() - begin, wide && !hasFlag ? 16 : 8));
  }

  /// Whether the flags are the operand's. Lines only.
  __device__ bool arrived(const LineOperand &operand, const uint4 &raw) const {
    if (!wide) {
      auto flag = static_cast<uint32_t>(operand.flag);
      return raw.y == flag && raw.w == flag;
    }
    return !hasFlag || (raw.z | static_cast<uint64_t>(raw.w) << 32) == operand.flag;
  }
  __device__ uint4 loadRaw(const LineOperand &operand) const {
    return loadOfLine(operand.address + unit * 16);
  }
  /// Data in the first words, whatever lies in the rest.
  __device__ ulonglong2 data(const uint4 &raw) const {
    if (!wide)
      return {raw.x | static_cast<uint64_t>(raw.z) << 32, 0};
    return {raw.x | static_cast<uint64_t>(raw.y) << 32, raw.z | static_cast<uint64_t>(raw.w) << 32};
  }
  __device__ ulonglong2 load(const LineOperand &operand) const {
    if (operand.flag != 0)
      return data(loadRaw(operand));
    return {loadWord(operand, 0), bytes > 8 ? loadWord(operand, 8) : 0};
  }
  __device__ void store(const LineOperand &operand, ulonglong2 value) const {
    if (operand.flag == 0) {
      storeWord(operand, 0, value.x);
      if (bytes > 8)
        storeWord(operand, 8, value.y);
      return;
    }
    auto flag = static_cast<uint32_t>(operand.flag);
    uint4 raw = {static_cast<uint32_t>(value.x), flag, static_cast<uint32_t>(value.x >> 32), flag};
    if (wide) {
      uint64_t second = hasFlag ? operand.flag : value.y;
      raw = {static_cast<uint32_t>(value.x), static_cast<uint32_t>(value.x >> 32),
             static_cast<uint32_t>(second), static_cast<uint32_t>(second >> 32)};
    }
    storeOfLine(operand.address + unit * 16, raw);
  }

  const LineTask &task;
  const uint32_t unit;
  const bool wide, inRange;
  uint32_t bytes; // of data

private:
  /// Calls visit(address, position in the word, bytes) for what the word holds, at most 8 bytes.
  template <class Visit>
  __device__ void forElements(const LineOperand &operand, uint32_t word, Visit visit) const {
    auto size = static_cast<uint32_t>(task.program->elementBytes);
    uint32_t held = bytes - word < 8 ? bytes - word : 8;
    uint64_t first = task.begin + (begin + word) / size;
#pragma unroll 1
    for (uint32_t at = 0; at < held; at += size)
      visit(task.elementOf(operand, first + at / size), at, size);
  }
  /// Where all of a word can be accessed at once, or null.
  __device__ char *wholeWord(const LineOperand &operand, uint32_t word) const {
    if (!task.instruction->contiguous || bytes < word + 8)
      return nullptr;
    char *address = task.inContiguous(operand, task.begin) + begin + word;
    return reinterpret_cast<uintptr_t>(address) % 8 == 0 ? address : nullptr;
  }
  __device__ uint64_t loadWord(const LineOperand &operand, uint32_t word) const {
    if (char *address = wholeWord(operand, word))
      return *reinterpret_cast<const uint64_t *>(address);
    return loadElements(operand, word);
  }
  __device__ void storeWord(const LineOperand &operand, uint32_t word, uint64_t value) const {
    if (char *address = wholeWord(operand, word))
      *reinterpret_cast<uint64_t *>(address) = value;
    else
      storeElements(operand, word, value);
  }
  __device__ __noinline__ uint64_t loadElements(const LineOperand &operand, uint32_t word) const {
    uint64_t value = 0;
    forElements(operand, word, [&](const char *from, uint32_t at, uint32_t size) {
      for (uint32_t i = 0; i < size; ++i)
        value |= static_cast<uint64_t>(static_cast<uint8_t>(from[i])) << 8 * (at + i);
    });
    return value;
  }
  __device__ __noinline__ void storeElements(const LineOperand &operand, uint32_t word,
                                             uint64_t value) const {
    forElements(operand, word, [&](char *to, uint32_t at, uint32_t size) {
      for (uint32_t i = 0; i < size; ++i)
        to[i] = static_cast<char>(value >> 8 * (at + i));
    });
  }

  bool hasFlag;
  uint64_t begin; // of the data, in the slice
};

/// How often a warp looks before the block asks whether all have arrived.
inline constexpr uint32_t kLooks = 32;

/// N sources, held in registers; those of LL from the look that found them. Any other number
/// (N = 0): the lines stay as they are, so they are loaded again when they are used.
template <uint32_t N> class LineSources {
public:
  __device__ explicit LineSources(const LineUnit &unit) : unit(unit) {}

  /// The first source that has not arrived for this thread, or kNothing. All lanes of a warp.
  __device__ uint32_t look() {
    uint32_t missing = LineTask::kNothing;
    for (uint32_t look = 0; look < kLooks; ++look) {
      missing = LineTask::kNothing;
      if (unit.inRange)
        lookOnce(missing);
      if (__all_sync(~0u, missing == LineTask::kNothing)) {
        if (unit.wide && unit.inRange)
          loadLines();
        break;
      }
    }
    return missing;
  }
  __device__ ulonglong2 operator[](uint32_t source) const {
    const LineOperand &operand = unit.task.operands[source];
    if constexpr (N != 0)
      if (operand.flag != 0)
        return unit.data(raw[source]);
    return unit.load(operand);
  }

private:
  __device__ void loadLines() {
    if constexpr (N != 0) {
#pragma unroll
      for (uint32_t s = 0; s < N; ++s)
        if (unit.task.operands[s].flag != 0)
          raw[s] = unit.loadRaw(unit.task.operands[s]);
    }
  }
  __device__ void lookOnce(uint32_t &missing) {
    const LineOperand *operands = unit.task.operands;
    loadLines();
    if constexpr (N != 0) {
#pragma unroll
      for (uint32_t s = 0; s < N; ++s)
        if (operands[s].flag != 0 && !unit.arrived(operands[s], raw[s]))
          missing = s;
    } else {
#pragma unroll 1
      for (uint32_t s = 0; s < unit.task.numSources; ++s)
        if (operands[s].flag != 0 && !unit.arrived(operands[s], unit.loadRaw(operands[s])))
          missing = s;
    }
  }

  const LineUnit &unit;
  uint4 raw[N == 0 ? 1 : N];
};

/// Both words of a unit, folded over all sources.
template <class Element, class Operation, uint32_t N>
__device__ ulonglong2 foldUnit(const LineTask &task, const LineSources<N> &sources) {
  using Word = Lanes<Element, uint64_t>;
  uint32_t numSources = N != 0 ? N : task.numSources;
  ulonglong2 first = sources[0];
  Word low(first.x), high(first.y);
#pragma unroll(N == 0 ? 1 : N)
  for (uint32_t s = 1; s < numSources; ++s) {
    ulonglong2 next = sources[s];
    low.template apply<Operation>(Word(next.x));
    high.template apply<Operation>(Word(next.y));
  }
  return {low.pack(task.divisor), high.pack(task.divisor)};
}

/// The slice's only source as it is.
struct CopyUnit {
  template <uint32_t N>
  __device__ static ulonglong2 run(const LineTask &, const LineSources<N> &sources) {
    return sources[0];
  }
};
template <class Element, class Operation> struct FixedUnit {
  template <uint32_t N>
  __device__ static ulonglong2 run(const LineTask &task, const LineSources<N> &sources) {
    return foldUnit<Element, Operation>(task, sources);
  }
};
/// A call for each type and operation: inlined, they take minutes to compile.
struct AnyUnit {
  template <class Element, class Operation>
  __device__ __noinline__ static ulonglong2 call(const LineTask &task,
                                                 const LineSources<0> &sources) {
    return foldUnit<Element, Operation>(task, sources);
  }
  struct Visitor {
    const LineTask &task;
    const LineSources<0> &sources;
    template <class Element, class Operation> __device__ ulonglong2 operator()() const {
      return call<Element, Operation>(task, sources);
    }
  };
  __device__ static ulonglong2 run(const LineTask &task, const LineSources<0> &sources) {
    return dispatchFold(task.program->type, task.program->op, Visitor{task, sources});
  }
};

/// All lanes of some warps call this, thread by thread a unit of the task. False:
/// something is missing, nothing was stored.
template <class Fold, uint32_t N, class Vote>
__device__ bool foldLinesOf(LineTask &task, uint32_t thread, const Vote &vote) {
  LineUnit unit(task, thread);
  LineSources<N> sources(unit);
  uint32_t missing = sources.look();
  if (missing != LineTask::kNothing)
    atomicExch(&task.missing, missing);
  if (!vote(missing == LineTask::kNothing))
    return false;
  if (!unit.inRange)
    return true;
  ulonglong2 value = Fold::run(task, sources);
#pragma unroll 1
  for (uint32_t d = 0; d < task.numDestinations; ++d)
    unit.store(task.operands[task.numSources + d], value);
  return true;
}

/// As Fold, which is FixedFold or AnyFold, but for lines.
template <class Fold> struct FoldLines {
  template <class Vote>
  __device__ __noinline__ static bool run(LineTask &task, uint32_t thread, Vote vote) {
    if (task.numSources == 1 && task.divisor <= 1)
      return foldLinesOf<CopyUnit, 1>(task, thread, vote);
    return foldLinesOf<AnyUnit, 0>(task, thread, vote);
  }
};
template <class Element, class Operation> struct FoldLines<FixedFold<Element, Operation>> {
  /// With code for the usual numbers of sources.
  template <class Vote>
  __device__ __noinline__ static bool run(LineTask &task, uint32_t thread, Vote vote) {
    using Unit = FixedUnit<Element, Operation>;
    if (task.numSources == 1 && task.divisor <= 1)
      return foldLinesOf<CopyUnit, 1>(task, thread, vote);
    if (task.numSources == 2)
      return foldLinesOf<Unit, 2>(task, thread, vote);
    if (task.numSources == 4)
      return foldLinesOf<Unit, 4>(task, thread, vote);
    if (task.numSources == 8)
      return foldLinesOf<Unit, 8>(task, thread, vote);
    return foldLinesOf<Unit, 0>(task, thread, vote);
  }
};

} // namespace occl::interpreter::cuda
