#include "compiler/dialect/chunk/ChunkProgram.h"

namespace occl::chunk {

// For each operation: kind, buffer, whether it is final, rank, index, count, channel, hint,
// location, the number of its sources; then the sources.
dialect::FlatForm flatten(const ChunkProgram &program) {
  dialect::FlatForm flat;
  dialect::LocationNumbers locations(flat);
  for (const ChunkOp &op : program.ops) {
    flat.numbers.insert(flat.numbers.end(),
                        {static_cast<int64_t>(op.kind), static_cast<int64_t>(op.buffer), op.final,
                         op.rank, op.index, op.count, op.channel, op.hint,
                         locations.of(op.location), op.numSources});
    llvm::ArrayRef<uint32_t> sources = program.sourcesOf(op);
    flat.numbers.insert(flat.numbers.end(), sources.begin(), sources.end());
  }
  return flat;
}

bool unflatten(const dialect::FlatForm &flat, ChunkProgram &program) {
  // In the order of flatten(). Each number is checked as it is read, and the end of the list must
  // be the end of an operation.
  dialect::FlatReader reader(flat);
  llvm::SmallVector<uint32_t> sources;
  while (!reader.isAtEnd()) {
    ChunkOp op;
    // Enumerators are numbers up to the last one.
    op.kind = static_cast<ChunkOp::Kind>(
        reader.next<uint8_t>(static_cast<int64_t>(ChunkOp::Kind::Reduce)));
    op.buffer = static_cast<plan::OperandKind>(
        reader.next<uint8_t>(static_cast<int64_t>(plan::OperandKind::Scratch)));
    op.final = reader.next<uint8_t>(1) != 0;
    op.rank = reader.next<int32_t>();
    op.index = reader.next<int32_t>();
    op.count = reader.next<int32_t>();
    op.channel = reader.next<int32_t>();
    op.hint = reader.next<int32_t>();
    op.location = reader.nextLocation();
    // The reader bounds the size by what is left, so that a wrong number allocates nothing.
    sources.resize(reader.nextSize());
    for (uint32_t &source : sources)
      source = reader.next<uint32_t>();
    program.add(op, sources);
  }
  return !reader.hasFailed();
}

} // namespace occl::chunk
