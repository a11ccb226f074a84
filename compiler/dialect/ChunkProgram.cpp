#include "compiler/dialect/ChunkProgram.h"

#include "mlir/IR/DialectInterface.h"

#include "llvm/ADT/DenseMap.h"

#include <utility>

using namespace mlir;

namespace occl::chunk {

/// The operations between storeChunks and takeChunks. A context compiles one program at a time:
/// whoever stores another one has taken the first.
class KeptChunks : public DialectInterface::Base<KeptChunks> {
public:
  explicit KeptChunks(Dialect *dialect) : Base(dialect) {}

  /// The context's, or null if it does not keep programs.
  static KeptChunks *of(MLIRContext *context) {
    auto *kept = context->getLoadedDialect<ChunkDialect>()->getRegisteredInterface<KeptChunks>();
    return kept && kept->isActive ? kept : nullptr;
  }
  /// Null if it does not keep those of `program`.
  static KeptChunks *of(ProgramOp program) {
    KeptChunks *kept = of(program.getContext());
    return kept && kept->owner == program ? kept : nullptr;
  }

  bool isActive = false;
  ProgramOp owner;
  ChunkProgram chunks;
};

namespace {

/// What copies and reductions have.
template <typename Op> void readScheduled(Op operation, ChunkOp &op) {
  op.channel = operation.getChannel();
  op.hint = operation.getHint();
}

ChunkProgram readOps(ProgramOp program) {
  ChunkProgram chunks;
  llvm::DenseMap<Operation *, uint32_t> positions;
  for (Operation &operation : program.getBody().front()) {
    auto range = cast<ChunkOpInterface>(operation);
    ChunkOp op;
    op.buffer = range.getBuffer();
    op.rank = range.getRank();
    op.index = range.getIndex();
    op.count = range.getCount();
    op.location = operation.getLoc();
    if (auto copy = dyn_cast<CopyOp>(operation)) {
      op.kind = ChunkOp::Kind::Copy;
      readScheduled(copy, op);
    } else if (auto reduce = dyn_cast<ReduceOp>(operation)) {
      op.kind = ChunkOp::Kind::Reduce;
      readScheduled(reduce, op);
      op.final = reduce.getFinal();
    }
    SmallVector<uint32_t, 8> sources;
    for (Value source : operation.getOperands())
      sources.push_back(positions.lookup(source.getDefiningOp()));
    positions[&operation] = chunks.add(op, sources);
  }
  return chunks;
}

void writeOps(const ChunkProgram &chunks, ProgramOp program) {
  OpBuilder builder = OpBuilder::atBlockEnd(&program.getBody().front());
  std::vector<Value> values;
  values.reserve(chunks.ops.size());
  for (const ChunkOp &op : chunks.ops) {
    SmallVector<Value, 8> sources;
    for (uint32_t source : chunks.sourcesOf(op))
      sources.push_back(values[source]);
    switch (op.kind) {
    case ChunkOp::Kind::Read:
      values.push_back(builder.create<ReadOp>(op.location, op.rank, op.buffer, op.index, op.count));
      break;
    case ChunkOp::Kind::Copy:
      values.push_back(builder.create<CopyOp>(op.location, sources.front(), op.rank, op.buffer,
                                              op.index, op.channel, op.hint));
      break;
    case ChunkOp::Kind::Reduce: {
      auto reduce = builder.create<ReduceOp>(op.location, sources, op.rank, op.buffer, op.index,
                                             op.channel, op.hint);
      reduce.setFinal(op.final);
      values.push_back(reduce);
    }
    }
  }
}

} // namespace

void keepChunks(MLIRContext &context) {
  auto *dialect = context.getLoadedDialect<ChunkDialect>();
  auto *kept = dialect->getRegisteredInterface<KeptChunks>();
  if (!kept)
    kept = &dialect->addInterface<KeptChunks>();
  kept->isActive = true;
}

ChunkProgram takeChunks(ProgramOp program) {
  KeptChunks *kept = KeptChunks::of(program);
  if (!kept)
    return readOps(program);
  kept->owner = {};
  return std::exchange(kept->chunks, {});
}

void storeChunks(ChunkProgram &&chunks, ProgramOp program) {
  program.getBody().front().clear();
  if (KeptChunks *kept = KeptChunks::of(program.getContext())) {
    kept->owner = program;
    kept->chunks = std::move(chunks);
    return;
  }
  writeOps(chunks, program);
}

void readChunks(ProgramOp program, llvm::function_ref<void(const ChunkProgram &)> fn) {
  if (KeptChunks *kept = KeptChunks::of(program))
    fn(kept->chunks);
  else
    fn(readOps(program));
}

void writeKeptChunks(MLIRContext &context) {
  KeptChunks *kept = KeptChunks::of(&context);
  if (!kept)
    return;
  kept->isActive = false;
  if (ProgramOp program = std::exchange(kept->owner, {}))
    writeOps(std::exchange(kept->chunks, {}), program);
}

} // namespace occl::chunk
