#include "compiler/analysis/AccessMap.h"
#include "compiler/dialect/ProgramHeader.h"
#include "compiler/passes/Passes.h"

namespace occl::passes {
#define GEN_PASS_DEF_CHUNKMARKFINAL
#include "compiler/passes/Passes.h.inc"
} // namespace occl::passes

using namespace mlir;
using namespace occl;
using plan::OperandKind;

namespace {

/// For each chunk of each buffer, the reduction whose result it holds unchanged, or null. A program
/// that runs in place only may write to its input, which is a part of its output.
class Origins {
public:
  explicit Origins(const dialect::ProgramHeader &header)
      : header(header), maps(static_cast<size_t>(header.numRanks) * 3) {}

  void reduce(chunk::ReduceOp op) {
    if (!header.requirements.empty()) // the standard collectives promise nothing in between
      for (Value operand : op->getOperands())
        noteReducedFurther(operand.getDefiningOp<chunk::ChunkOpInterface>());
    auto [map, begin] = find(op.getRank(), op.getBuffer(), op.getIndex());
    map.assign(begin, begin + op.getCount(), op.getOperation());
  }

  void copy(chunk::CopyOp op) {
    auto source = op.getSource().getDefiningOp<chunk::ChunkOpInterface>();
    SmallVector<std::pair<int64_t, Operation *>, 4> pieces;
    auto [from, first] = find(source.getRank(), source.getBuffer(), source.getIndex());
    from.forEach(first, first + source.getCount(),
                 [&](int64_t begin, int64_t end, Operation *origin) {
                   pieces.push_back({end - begin, origin});
                 });
    auto [to, at] = find(op.getRank(), op.getBuffer(), op.getIndex());
    for (auto [length, origin] : pieces) {
      to.assign(at, at + length, origin);
      at += length;
    }
  }

  /// Marks the reductions whose results rank's output[index, index + count) holds.
  void mark(int32_t rank, int64_t index, int64_t count) {
    auto [map, begin] = find(rank, OperandKind::Output, index);
    map.forEach(begin, begin + count, [](int64_t, int64_t, Operation *origin) {
      if (origin)
        cast<chunk::ReduceOp>(origin).setFinal(true);
    });
  }

  /// Whether a reduction that is marked has a result that is reduced further.
  bool isMarkedReducedFurther() const {
    return llvm::any_of(reducedFurther,
                        [](Operation *op) { return cast<chunk::ReduceOp>(op).getFinal(); });
  }

private:
  using Map = analysis::AccessMap<Operation *>;

  void noteReducedFurther(chunk::ChunkOpInterface source) {
    auto [map, begin] = find(source.getRank(), source.getBuffer(), source.getIndex());
    map.forEach(begin, begin + source.getCount(), [&](int64_t, int64_t, Operation *origin) {
      if (origin && (reducedFurther.empty() || reducedFurther.back() != origin))
        reducedFurther.push_back(origin);
    });
  }

  /// The map in which a chunk is, and its place there.
  std::pair<Map &, int64_t> find(int32_t rank, OperandKind buffer, int64_t index) {
    if (!header.outOfPlace && buffer != OperandKind::Scratch) {
      // The input may begin before the output.
      int64_t offset = header.inPlaceOffsets[rank];
      index += std::max<int64_t>(0, buffer == OperandKind::Input ? offset : -offset);
      buffer = OperandKind::Output;
    }
    return {maps[static_cast<size_t>(rank) * 3 + static_cast<size_t>(buffer)], index};
  }

  const dialect::ProgramHeader &header;
  std::vector<Map> maps;
  std::vector<Operation *> reducedFurther;
};

void markRequired(Origins &origins, const dialect::ProgramHeader &header) {
  if (header.requirements.empty()) {
    for (int32_t rank = 0; rank < header.numRanks; ++rank)
      if (header.outputChunks[rank] > 0 && (header.collective != "reduce" || rank == header.root))
        origins.mark(rank, 0, header.outputChunks[rank]);
    return;
  }
  for (llvm::ArrayRef<int32_t> rest = header.requirements; !rest.empty();) {
    origins.mark(rest[0], rest[1], rest[2]);
    rest = rest.drop_front(4 + 2 * static_cast<size_t>(rest[3]));
  }
}

class ChunkMarkFinalPass : public passes::impl::ChunkMarkFinalBase<ChunkMarkFinalPass> {
  void runOnOperation() override {
    for (auto program : getOperation().getOps<chunk::ProgramOp>()) {
      dialect::ProgramHeader header = dialect::headerOf(program);
      Origins origins(header);
      for (Operation &op : program.getBody().front()) {
        if (auto reduce = dyn_cast<chunk::ReduceOp>(op)) {
          reduce.setFinal(false);
          origins.reduce(reduce);
        } else if (auto copy = dyn_cast<chunk::CopyOp>(op)) {
          origins.copy(copy);
        }
      }
      markRequired(origins, header);
      if (origins.isMarkedReducedFurther())
        program.walk([](chunk::ReduceOp reduce) { reduce.setFinal(false); });
    }
  }
};

} // namespace
