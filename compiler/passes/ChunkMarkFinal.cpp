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

/// For each chunk of each buffer, the reduction whose result it holds unchanged, or null.
class Origins {
public:
  explicit Origins(int32_t numRanks) : maps(static_cast<size_t>(numRanks) * 3) {}

  void reduce(chunk::ReduceOp op) {
    mapOf(op.getRank(), op.getBuffer())
        .assign(op.getIndex(), op.getIndex() + op.getCount(), op.getOperation());
  }

  void copy(chunk::CopyOp op) {
    auto source = op.getSource().getDefiningOp<chunk::ChunkOpInterface>();
    SmallVector<std::pair<int64_t, Operation *>, 4> pieces;
    mapOf(source.getRank(), source.getBuffer())
        .forEach(source.getIndex(), source.getIndex() + source.getCount(),
                 [&](int64_t begin, int64_t end, Operation *origin) {
                   pieces.push_back({end - begin, origin});
                 });
    int64_t at = op.getIndex();
    for (auto [length, origin] : pieces) {
      mapOf(op.getRank(), op.getBuffer()).assign(at, at + length, origin);
      at += length;
    }
  }

  /// Marks the reductions whose results rank's output[begin, begin + count) holds.
  void mark(int32_t rank, int64_t begin, int64_t count) {
    mapOf(rank, OperandKind::Output)
        .forEach(begin, begin + count, [](int64_t, int64_t, Operation *origin) {
          if (origin)
            cast<chunk::ReduceOp>(origin).setFinal(true);
        });
  }

private:
  analysis::AccessMap<Operation *> &mapOf(int32_t rank, OperandKind buffer) {
    return maps[static_cast<size_t>(rank) * 3 + static_cast<size_t>(buffer)];
  }

  std::vector<analysis::AccessMap<Operation *>> maps;
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
      Origins origins(static_cast<int32_t>(program.getNumRanks()));
      for (Operation &op : program.getBody().front()) {
        if (auto reduce = dyn_cast<chunk::ReduceOp>(op)) {
          reduce.setFinal(false);
          origins.reduce(reduce);
        } else if (auto copy = dyn_cast<chunk::CopyOp>(op)) {
          origins.copy(copy);
        }
      }
      markRequired(origins, dialect::headerOf(program));
    }
  }
};

} // namespace
