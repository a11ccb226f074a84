#include "compiler/dialect/chunk/ChunkProgram.h"
#include "compiler/dialect/KeptData.h"

#include "llvm/ADT/DenseMap.h"

#include <optional>
#include <utility>

using namespace mlir;

namespace occl::chunk {

using KeptChunks = dialect::KeptData<ChunkDialect, ProgramOp, ChunkProgram>;

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

void keepChunks(MLIRContext &context) { KeptChunks::begin(context); }

ChunkProgram takeChunks(ProgramOp program) {
  if (std::optional<ChunkProgram> kept = KeptChunks::take(program))
    return std::move(*kept);
  return readOps(program);
}

void storeChunks(ChunkProgram &&chunks, ProgramOp program) {
  program.getBody().front().clear();
  if (!KeptChunks::store(std::move(chunks), program))
    writeOps(chunks, program);
}

void readChunks(ProgramOp program, llvm::function_ref<void(const ChunkProgram &)> fn) {
  if (const ChunkProgram *kept = KeptChunks::find(program))
    fn(*kept);
  else
    fn(readOps(program));
}

void writeKeptChunks(MLIRContext &context) {
  if (auto [program, chunks] = KeptChunks::end(context); program)
    writeOps(chunks, program);
}

} // namespace occl::chunk
