#include "compiler/analysis/AccessMap.h"
#include "compiler/dialect/ProgramHeader.h"
#include "compiler/passes/Passes.h"
#include "plan/collectives/collectives.h"

namespace occl::passes {
#define GEN_PASS_DEF_CHUNKMARKFINAL
#include "compiler/passes/Passes.h.inc"
} // namespace occl::passes

using namespace mlir;
using namespace occl;
using chunk::ChunkOp;
using plan::OperandKind;

namespace {

/// For each chunk of each buffer, the reduction whose result it holds unchanged, or null. A program
/// that runs in place only may write to its input, which is a part of its output.
class Origins {
public:
  Origins(const dialect::ProgramHeader &header, chunk::ChunkProgram &program)
      : header(header), program(program), maps(static_cast<size_t>(header.numRanks) * 3) {}

  void reduce(ChunkOp &op) {
    if (!header.requirements.empty()) // the standard collectives promise nothing in between
      for (uint32_t source : program.sourcesOf(op))
        noteReducedFurther(program.ops[source]);
    auto [map, begin] = find(op.rank, op.buffer, op.index);
    map.assign(begin, begin + op.count, &op);
  }

  void copy(const ChunkOp &op) {
    // The origin of each piece of the source becomes that of the destination. Collected first, as
    // the two ranges may be the same memory.
    const ChunkOp &source = program.ops[program.sourcesOf(op).front()];
    SmallVector<std::pair<int64_t, ChunkOp *>, 4> pieces;
    auto [from, first] = find(source.rank, source.buffer, source.index);
    from.forEach(first, first + source.count, [&](int64_t begin, int64_t end, ChunkOp *origin) {
      pieces.push_back({end - begin, origin});
    });
    auto [to, at] = find(op.rank, op.buffer, op.index);
    for (auto [length, origin] : pieces) {
      to.assign(at, at + length, origin);
      at += length;
    }
  }

  /// Marks the reductions whose results rank's output[index, index + count) holds.
  void mark(int32_t rank, int64_t index, int64_t count) {
    auto [map, begin] = find(rank, OperandKind::Output, index);
    map.forEach(begin, begin + count, [](int64_t, int64_t, ChunkOp *origin) {
      if (origin)
        origin->final = true;
    });
  }

  /// Whether a reduction that is marked has a result that is reduced further.
  bool isMarkedReducedFurther() const {
    return llvm::any_of(reducedFurther, [](const ChunkOp *op) { return op->final; });
  }

private:
  using Map = analysis::AccessMap<ChunkOp *>;

  void noteReducedFurther(const ChunkOp &source) {
    auto [map, begin] = find(source.rank, source.buffer, source.index);
    map.forEach(begin, begin + source.count, [&](int64_t, int64_t, ChunkOp *origin) {
      if (origin && (reducedFurther.empty() || reducedFurther.back() != origin))
        reducedFurther.push_back(origin);
    });
  }

  /// The map in which a chunk is, and its place there.
  std::pair<Map &, int64_t> find(int32_t rank, OperandKind buffer, int64_t index) {
    // Unless the program is for out of place only, input and output share memory.
    if (!header.outOfPlace && buffer != OperandKind::Scratch) {
      // The input may begin before the output.
      int64_t offset = header.inPlaceOffsets[rank];
      index += std::max<int64_t>(0, buffer == OperandKind::Input ? offset : -offset);
      buffer = OperandKind::Output;
    }
    return {maps[static_cast<size_t>(rank) * 3 + static_cast<size_t>(buffer)], index};
  }

  const dialect::ProgramHeader &header;
  chunk::ChunkProgram &program;
  std::vector<Map> maps;
  std::vector<ChunkOp *> reducedFurther;
};

void markRequired(Origins &origins, const dialect::ProgramHeader &header) {
  // Standard collectives: all outputs of ranks that get one.
  if (header.requirements.empty()) {
    const auto collective = plan::standardCollectiveOf(header.collective);
    const plan::Parts parts{static_cast<uint32_t>(header.numRanks),
                            static_cast<uint32_t>(header.root)};
    for (int32_t rank = 0; rank < header.numRanks; ++rank)
      if (header.outputChunks[rank] > 0 &&
          (!collective || needsOutput(*collective, parts, static_cast<uint32_t>(rank))))
        origins.mark(rank, 0, header.outputChunks[rank]);
    return;
  }
  // Others list the chunks that they promise.
  for (llvm::ArrayRef<int32_t> rest = header.requirements; !rest.empty();) {
    origins.mark(rest[0], rest[1], rest[2]);
    rest = rest.drop_front(4 + 2 * static_cast<size_t>(rest[3]));
  }
}

void markFinal(chunk::ChunkProgram &program, const dialect::ProgramHeader &header) {
  // In the order of execution: which reduction has made what lies in each location.
  Origins origins(header, program);
  for (ChunkOp &op : program.ops) {
    op.final = false;
    if (op.kind == ChunkOp::Kind::Reduce)
      origins.reduce(op);
    else if (op.kind == ChunkOp::Kind::Copy)
      origins.copy(op);
  }
  markRequired(origins, header);
  // A reduction that is marked and reduced further cannot be final, and then none is: the plan is
  // not for averages.
  if (origins.isMarkedReducedFurther())
    for (ChunkOp &op : program.ops)
      op.final = false;
}

class ChunkMarkFinalPass : public passes::impl::ChunkMarkFinalBase<ChunkMarkFinalPass> {
  void runOnOperation() override {
    for (auto op : getOperation().getOps<chunk::ProgramOp>())
      markFinal(op.getMutableOperations(), dialect::headerOf(op));
  }
};

} // namespace
