// From a verified plan to what the interpreter executes. Host only.
#pragma once

#include "plan/model/plan.h"
#include "runtime/base/data_type.h"
#include "runtime/base/status.h"
#include "runtime/exec/step/invocation.h"
#include "runtime/exec/step/step_table.h"

#include <cstdint>
#include <memory>
#include <memory_resource>
#include <span>
#include <vector>

namespace occl::interpreter {

/// How chunks are cut. All ranks must use the same.
struct TilePolicy {
  /// The largest message of a tile has about so many bytes.
  uint64_t messageBytes = 64 << 10;
  uint32_t slicesPerMessage = 1;
};

struct BindRequest {
  uint32_t rank = 0;
  uint64_t count = 0; // elements of one part
  DataType type = DataType::Float32;
  ReduceOp op = ReduceOp::Sum;
  TilePolicy tiles = {};
  Placement placement = Placement::AtSource; // all ranks must use the same
  LinePolicy lines = {};
  /// While some rank's arena block would have more bytes than `mostArenaBytes`, messages are halved,
  /// down to `smallestMessageBytes`; those in lines are not. A block may still have more: see
  /// arenaBytes(). All ranks must use the same.
  uint64_t mostArenaBytes = ~0ull, smallestMessageBytes = 0;
  /// Messages have no lines, whatever protocol the plan wants. All ranks must use the same.
  bool isSimple = false;
  /// Slices of so many bytes or more may be references; 0: none. All ranks must use the same.
  uint64_t referenceBytes = 0;
  /// Heads lie so many bytes behind the begin of the arena block that they belong to, where all
  /// ranks may write, instead of in it; 0: in it. All ranks must use the same.
  uint64_t headsDistance = 0;
  /// Slots begin so many bytes behind the begin of an arena block, a multiple of 128, however few
  /// tails, heads and signals lie before them: so that programs which use the same block one after
  /// the other have the same kind of memory in the same place. All ranks must use the same.
  uint64_t slotsOffset = 0;
  /// Consecutive instructions that need not wait apart become one step of at most so many operands;
  /// 0: each is a step. A rank's own business. For executors that know all places before they run a
  /// thread block.
  uint32_t stepOperands = 0;
  /// In lines such steps have at most so many bytes of data; 0: each instruction is one. For
  /// executors that take all slices of an instruction in one step (straight.h).
  uint32_t lineStepBytes = 0;
  /// For hosts: thread blocks have step tables, in which consecutive instructions of plain lines
  /// that need not wait apart are one step. Not with stepOperands.
  bool hostSteps = false;
  /// Programs of LL have the lines of LL128: other packets of the same messages. For hosts, where a
  /// cache line crosses as one. All ranks must use the same.
  bool onlyWideLines = false;
};

/// Owns the tables of one rank's program. Immutable: concurrent reads are safe.
class Binding {
public:
  Binding(const Binding &) = delete;
  Binding &operator=(const Binding &) = delete;

  const Program &program() const { return bound; }
  /// Bytes of rank r's arena block of one invocation: the same on every rank that asks. The first
  /// controlBytes(r) of them must be zero before rank r announces the block; a multiple of 64. A
  /// block starts at a multiple of 128.
  uint64_t arenaBytes(uint32_t r) const { return arenaSizes[r]; }
  uint64_t controlBytes(uint32_t r) const { return controlSizes[r]; }
  /// Bytes of heads outside of rank r's arena block, which must be zero before it is announced: so
  /// many from BindRequest::headsDistance on, no more than the block has.
  uint64_t headBytes(uint32_t r) const { return headSizes[r]; }
  /// Bytes of tails and heads, at the begin of the control bytes. The rest of these are lines,
  /// which need not be zero if none has a flag of the invocation.
  uint64_t counterBytes(uint32_t r) const { return counterSizes[r]; }
  /// Whether arena blocks are nothing but lines, of all ranks.
  bool hasOnlyLines() const;
  /// Of one invocation; uninitialised memory will do.
  uint64_t scratchBytes() const { return scratchSize; }
  /// Zeroed at the start of an invocation.
  uint64_t progressBytes() const { return bound.numBlocks * kControlStride; }
  uint32_t numEnds() const { return static_cast<uint32_t>(ends.size()); }
  /// Of the user's buffers.
  uint64_t inputBytes() const { return inputSize; }
  uint64_t outputBytes() const { return outputSize; }
  /// The ranks whose arenas or buffers this one uses: ascending.
  std::span<const uint32_t> arenaRanks() const { return usedArenas; }
  /// The other ranks whose buffers this one accesses directly: ascending.
  std::span<const uint32_t> directRanks() const { return accessedRanks; }
  /// Of a thread block; null unless it was bound with BindRequest::hostSteps.
  const StepTable *steps(uint32_t block) const {
    return stepTables.empty() ? nullptr : stepTables[block].get();
  }
  /// Index in Plan::instructions of an instruction of a thread block of this rank.
  uint32_t planInstruction(uint32_t block, uint32_t instruction) const {
    return firstInstructions[block] + instruction;
  }

private:
  friend class Binder;
  /// expectedBytes: of its tables, about.
  Binding(size_t expectedBytes, std::pmr::memory_resource *memory)
      : memory(expectedBytes, memory) {}

  /// Of all tables but those for hosts: calls of new counts wait for them, and one piece costs less
  /// than twenty.
  std::pmr::monotonic_buffer_resource memory;
  template <class T> using Table = std::pmr::vector<T>;

  Program bound;
  Table<BoundBlock> blocks{&memory};
  Table<BoundInstruction> instructions{&memory};
  Table<BoundOperand> operands{&memory};
  Table<BoundAcquire> acquires{&memory};
  Table<BoundRelease> releases{&memory};
  Table<BoundNeed> needs{&memory};
  Table<ConnectionEnd> ends{&memory};
  Table<uint32_t> peers{&memory}, drains{&memory};
  Table<uint64_t> chunkBegins{&memory};
  Table<uint64_t> arenaSizes{&memory}, controlSizes{&memory}, counterSizes{&memory},
      headSizes{&memory}; // by rank
  Table<uint32_t> usedArenas{&memory}, accessedRanks{&memory};
  Table<uint32_t> firstInstructions{&memory};               // by thread block
  std::vector<std::unique_ptr<const StepTable>> stepTables; // likewise; empty: not for hosts
  uint64_t scratchSize = 0, inputSize = 0, outputSize = 0;
};

/// The plan must have been accepted by verifyPlan and outlive only this call. InvalidArgument if
/// the request does not fit the plan (the rank, a count that uniformChunks forbids, buffers of
/// any rank beyond 2^62 bytes, more than 2^31 slices of a connection in lines); InvalidPlan if it
/// uses what this interpreter does not execute (gates). Tables are of `memory`, which outlives
/// them.
StatusOr<std::shared_ptr<const Binding>>
bind(const plan::Plan &plan, const BindRequest &request,
     std::pmr::memory_resource *memory = std::pmr::get_default_resource());

} // namespace occl::interpreter
