#include "compiler/analysis/AccessMap.h"
#include "compiler/analysis/Dependences.h"
#include "compiler/analysis/ProgramIO.h"
#include "compiler/dialect/Hints.h"
#include "compiler/dialect/ProgramHeader.h"
#include "compiler/passes/Passes.h"

namespace occl::passes {
#define GEN_PASS_DEF_LOWERCHUNKS
#include "compiler/passes/Passes.h.inc"
} // namespace occl::passes

using namespace mlir;
using namespace occl;
using chunk::ChunkOp;
using plan::OperandKind;

namespace {

/// A range of chunks on a rank.
struct Range {
  int32_t rank;
  OperandKind buffer;
  int64_t index;
};

Range rangeOf(const ChunkOp &op) { return {op.rank, op.buffer, op.index}; }

/// Which chunk of a part lies where. In input and output that follows from the index; in scratch it
/// came with the value.
class Extents {
public:
  Extents(int32_t numRanks, int64_t partChunks)
      : partChunks(partChunks), scratch(static_cast<size_t>(numRanks)) {}

  int64_t of(Range range) {
    int64_t shift = 0;
    if (range.buffer == OperandKind::Scratch)
      scratch[range.rank].forEach(range.index, range.index + 1,
                                  [&](int64_t, int64_t, int64_t value) { shift = value; });
    return (range.index + shift) % partChunks;
  }

  /// Chunks from the beginning of `range` on, at most `count`, whose extents follow each other.
  int64_t consecutive(Range range, int64_t count) {
    // In scratch, what lies side by side need not have come from side by side: the extents must
    // follow each other, or it is several instructions.
    if (range.buffer != OperandKind::Scratch || partChunks == 1)
      return count;
    int64_t reach = 0;
    std::optional<int64_t> first;
    // Pieces with the same shift between index and extent, without gaps.
    scratch[range.rank].forEach(range.index, range.index + count,
                                [&](int64_t begin, int64_t end, int64_t shift) {
                                  if (!first)
                                    first = shift;
                                  if (shift == *first && begin == range.index + reach)
                                    reach += end - begin;
                                });
    return reach;
  }

  /// Chunks from `extent` on are stored in `range`. False if they do not fit its own extents.
  bool store(Range range, int64_t count, int64_t extent) {
    if (range.buffer != OperandKind::Scratch)
      return range.index % partChunks == extent;
    int64_t shift = (extent - range.index % partChunks + partChunks) % partChunks;
    scratch[range.rank].assign(range.index, range.index + count, shift);
    return true;
  }

private:
  int64_t partChunks;
  /// For each rank: extent - index modulo partChunks.
  std::vector<analysis::AccessMap<int64_t>> scratch;
};

class Lowering {
public:
  explicit Lowering(chunk::ProgramOp op)
      : op(op), header(dialect::headerOf(op)), chunks(op.getOperations()), hints(op.getHints()),
        extents(header.numRanks, header.partChunks) {
    program.partChunks = static_cast<uint32_t>(header.partChunks);
    program.outOfPlace = header.outOfPlace;
    program.inPlace = header.inPlace;
    program.depth = static_cast<uint32_t>(header.depth);
    // Sizes and offsets of each rank; which ranks mix extents in place is known at once.
    for (int32_t r = 0; r < header.numRanks; ++r) {
      analysis::Rank &rank = program.ranks.emplace_back();
      rank.scratchChunks = static_cast<uint32_t>(header.scratchChunks[r]);
      rank.inPlaceOffset = header.inPlaceOffsets[r];
      program.uniformChunks |= header.inPlace && mixesExtentsInPlace(r);
    }
  }

  LogicalResult run() {
    reserveSteps();
    for (const ChunkOp &target : chunks.ops)
      if (target.kind != ChunkOp::Kind::Read && failed(lower(target)))
        return failure();
    replace();
    return success();
  }

private:
  /// Whether an input chunk is, in place, an output chunk of another extent.
  bool mixesExtentsInPlace(int32_t rank) const {
    const int64_t offset = header.inPlaceOffsets[rank];
    return offset % header.partChunks != 0 && offset < header.outputChunks[rank] &&
           -offset < header.inputChunks[rank];
  }

  /// Each rank's steps are stored once, where they stay.
  void reserveSteps() {
    // One step for each operation on its rank, and one for each source that comes from another
    // rank.
    std::vector<size_t> numSteps(program.ranks.size());
    for (const ChunkOp &target : chunks.ops) {
      numSteps[target.rank] += target.kind != ChunkOp::Kind::Read;
      for (uint32_t source : chunks.sourcesOf(target))
        numSteps[chunks.ops[source].rank] += chunks.ops[source].rank != target.rank;
    }
    for (auto [rank, number] : llvm::zip(program.ranks, numSteps))
      rank.steps.reserve(number);
  }

  LogicalResult lower(const ChunkOp &target) {
    // An operation becomes one instruction on its rank and a send on each rank that it takes from;
    // or several of each, if chunks do not follow each other.
    SmallVector<Range, 4> sources;
    for (uint32_t source : chunks.sourcesOf(target))
      sources.push_back(rangeOf(chunks.ops[source]));
    Range destination = rangeOf(target);
    hint = dialect::hintAt(hints, target.hint);
    bool isLocal =
        llvm::all_of(sources, [&](const Range &source) { return source.rank == destination.rank; });
    if (isLocal && failed(chooseBlock(target)))
      return failure();
    // As many chunks at a time as all sources allow.
    for (int64_t rest = target.count; rest > 0;) {
      int64_t count = rest;
      for (const Range &source : sources)
        count = std::min(count, extents.consecutive(source, rest));
      // A copy onto itself is no instruction.
      if (!isIdentity(sources, destination, static_cast<uint32_t>(count)))
        emit(target, sources, destination, static_cast<uint32_t>(count));
      for (Range &source : sources)
        source.index += count;
      destination.index += count;
      rest -= count;
    }
    return success();
  }

  /// Of an op that sends nothing, both thread blocks that may be asked for are that of the one
  /// instruction.
  LogicalResult chooseBlock(const ChunkOp &target) {
    // A message has two thread blocks, a local operation one.
    if (hint.sendBlock >= 0 && hint.recvBlock >= 0 && hint.sendBlock != hint.recvBlock)
      return emitError(target.location)
             << "this stays on its rank, where one thread block does it, but thread block "
             << hint.sendBlock << " is asked to send and " << hint.recvBlock
             << " to receive; ask for one [E103]";
    if (hint.recvBlock < 0)
      hint.recvBlock = hint.sendBlock;
    return success();
  }

  static inst::Place placeOf(const Range &range) {
    return {static_cast<inst::PlaceKind>(range.buffer), -1, static_cast<uint32_t>(range.index)};
  }

  /// Whether a copy has nothing to do in any mode that the program claims.
  bool isIdentity(llvm::ArrayRef<Range> sources, const Range &destination, uint32_t count) {
    if (sources.size() != 1 || sources.front().rank != destination.rank)
      return false;
    inst::Place source = placeOf(sources.front()), place = placeOf(destination);
    analysis::Rank &rank = program.ranks[destination.rank];
    return analysis::areSame(program, rank, source, place, count);
  }

  void emit(const ChunkOp &target, llvm::ArrayRef<Range> sources, const Range &destination,
            uint32_t count) {
    // The instruction first: sends take their numbers from it.
    inst::Instruction &instruction = append(destination.rank, target);
    instruction.threadBlock = hint.recvBlock;
    instruction.count = count;
    instruction.extent = static_cast<uint32_t>(extents.of(sources.front()));
    instruction.final = target.final;
    for (auto [i, source] : llvm::enumerate(sources)) {
      // Sources with other extents make the plan one for uniform chunks.
      program.uniformChunks |= extents.of(source) != instruction.extent;
      if (source.rank == destination.rank) {
        instruction.sources.push_back(placeOf(source));
        continue;
      }
      // An instruction takes one message of a connection: more from one rank come on channels of
      // their own.
      auto others = static_cast<int32_t>(llvm::count_if(
          sources.take_front(i), [&](const Range &other) { return other.rank == source.rank; }));
      int32_t own =
          others == 0 ? target.channel : std::max({target.channel, header.channel, 0}) + others;
      instruction.sources.push_back(send(target, source, instruction, own));
    }
    // What is stored takes the extent of its destination's place.
    program.uniformChunks |= !extents.store(destination, count, instruction.extent);
    instruction.destinations.push_back(placeOf(destination));
  }

  /// Sends `source` from its rank to `receiver`, an instruction of another one; returns the place
  /// to receive it from.
  inst::Place send(const ChunkOp &target, const Range &source, const inst::Instruction &receiver,
                   int32_t channel) {
    inst::Place transfer = {inst::PlaceKind::Transfer, static_cast<int16_t>(channel),
                            program.numTransfers++};
    // The sender moves as many chunks of the same extent.
    inst::Instruction &instruction = append(source.rank, target);
    instruction.count = receiver.count;
    instruction.extent = receiver.extent;
    instruction.threadBlock = hint.sendBlock;
    instruction.sources.push_back(placeOf(source));
    instruction.destinations.push_back(transfer);
    return transfer;
  }

  /// The rank's next instruction. References to earlier ones of the rank end.
  inst::Instruction &append(int32_t rank, const ChunkOp &origin) {
    analysis::Step &step = program.ranks[rank].steps.emplace_back();
    step.location = origin.location;
    step.instruction.group = hint.aggregate;
    return step.instruction;
  }

  /// Puts the inst.program, with the same header, in the place of the chunk.program.
  void replace() {
    OpBuilder builder(op);
    OperationState state(op.getLoc(), inst::ProgramOp::getOperationName());
    // All attributes are the same in both dialects, but for the hints, which are used up.
    state.addAttributes(op->getAttrs());
    state.attributes.erase(op.getHintsAttrName());
    state.addRegion()->emplaceBlock();
    auto lowered = cast<inst::ProgramOp>(builder.create(state));
    op.erase();
    analysis::storeProgram(std::move(program), lowered);
  }

  chunk::ProgramOp op;
  dialect::ProgramHeader header;
  const chunk::ChunkProgram &chunks; // those of op
  llvm::ArrayRef<int32_t> hints;
  Extents extents;
  analysis::Program program;
  dialect::HintRecord hint; // of the op that is being lowered
};

class LowerChunksPass : public passes::impl::LowerChunksBase<LowerChunksPass> {
  void runOnOperation() override {
    for (auto program : llvm::make_early_inc_range(getOperation().getOps<chunk::ProgramOp>()))
      if (failed(Lowering(program).run()))
        signalPassFailure();
  }
};

} // namespace
