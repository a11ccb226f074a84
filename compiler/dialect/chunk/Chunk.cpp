#include "compiler/dialect/chunk/Chunk.h"

#include "compiler/dialect/Hints.h"
#include "compiler/dialect/ProgramHeader.h"
#include "mlir/IR/DialectImplementation.h"
#include "plan/model/limits.h"

using namespace mlir;
using namespace occl;
using namespace occl::chunk;

#include "compiler/dialect/chunk/ChunkDialect.cpp.inc"

void ChunkDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "compiler/dialect/chunk/ChunkOps.cpp.inc"
      >();
}

//===--- ProgramOp ---===//

void ProgramOp::build(OpBuilder &builder, OperationState &state, llvm::StringRef algorithm,
                      llvm::StringRef collective, llvm::ArrayRef<int32_t> inputChunks,
                      llvm::ArrayRef<int32_t> outputChunks, llvm::ArrayRef<int32_t> scratchChunks,
                      llvm::ArrayRef<int32_t> inPlaceOffsets) {
  // Properties are set, not attributes: they need no lookup by name.
  Properties &properties = state.getOrAddProperties<Properties>();
  properties.algorithm = builder.getStringAttr(algorithm);
  properties.collective = builder.getStringAttr(collective);
  properties.num_ranks = builder.getI32IntegerAttr(static_cast<int32_t>(inputChunks.size()));
  properties.input_chunks = builder.getDenseI32ArrayAttr(inputChunks);
  properties.output_chunks = builder.getDenseI32ArrayAttr(outputChunks);
  properties.scratch_chunks = builder.getDenseI32ArrayAttr(scratchChunks);
  properties.in_place_offsets = builder.getDenseI32ArrayAttr(inPlaceOffsets);
}

//===--- The operations ---===//

namespace {

/// An error at an operation's place that begins with its name.
InFlightDiagnostic errorAt(const ChunkOp &op) {
  return emitError(op.location) << "'" << nameOf(op.kind) << "' ";
}

LogicalResult verifySources(const ChunkProgram &program, const ChunkOp &op, size_t position) {
  // How many sources each kind has: a read none, a copy one, a reduction at least two.
  const llvm::ArrayRef<uint32_t> sources = program.sourcesOf(op);
  const size_t least = op.kind == ChunkOp::Kind::Read ? 0 : op.kind == ChunkOp::Kind::Copy ? 1 : 2;
  if (sources.size() < least)
    return errorAt(op) << "needs at least " << least << " sources, got " << sources.size();
  if (op.kind != ChunkOp::Kind::Reduce && sources.size() > least)
    return errorAt(op) << "needs " << least << " sources, got " << sources.size();
  // A plan's instruction has as many operands, the destination included.
  if (sources.size() >= plan::limits::kMaxOperands)
    return errorAt(op) << "has " << sources.size() << " sources; a plan allows "
                       << plan::limits::kMaxOperands - 1;
  // Sources are results of earlier operations: the list is in the order of execution, so there are
  // no cycles.
  for (uint32_t source : sources) {
    if (source >= position)
      return errorAt(op) << "has a source that is no earlier operation";
    const ChunkOp &producer = program.ops[source];
    if (producer.count == op.count)
      continue;
    auto diagnostic = errorAt(op) << "stores " << op.count << " chunks, but a source has "
                                  << producer.count;
    diagnostic.attachNote(producer.location) << "the source is defined here";
    return diagnostic;
  }
  return success();
}

/// Of the operation at `position`.
LogicalResult verifyOperation(const ChunkProgram &program, const dialect::ProgramHeader &header,
                              llvm::ArrayRef<int32_t> hints, size_t position) {
  // From what all operations have to what some have. Ranges are checked last, with the message that
  // names chunks.
  const ChunkOp &op = program.ops[position];
  auto emitError = [&] { return errorAt(op); };
  if (failed(verifySources(program, op, position)))
    return failure();
  if ((op.final && op.kind != ChunkOp::Kind::Reduce) ||
      (op.kind == ChunkOp::Kind::Read && (op.channel != -1 || op.hint != -1)))
    return errorAt(op)
           << "has what its kind of operation does not: a channel, a hint, or that it is final";
  if (op.channel < -1 || op.channel >= static_cast<int32_t>(plan::limits::kMaxChannels))
    return errorAt(op) << "needs a channel below " << plan::limits::kMaxChannels << ", got "
                       << op.channel;
  if (failed(dialect::verifyHint(emitError, hints, op.hint)))
    return failure();
  return dialect::verifyRange(emitError, header, op.rank, op.buffer, op.index, op.count);
}

} // namespace

LogicalResult ProgramOp::verify() {
  const dialect::ProgramHeader header = dialect::headerOf(*this);
  // The header first, since operations are checked against its sizes.
  if (failed(dialect::verifyHeader(*this, header)) ||
      failed(dialect::verifyHints(*this, getHints())))
    return failure();
  const ChunkProgram &program = getOperations();
  for (size_t i = 0; i < program.ops.size(); ++i)
    if (failed(verifyOperation(program, header, getHints(), i)))
      return failure();
  return success();
}

#define GET_OP_CLASSES
#include "compiler/dialect/chunk/ChunkOps.cpp.inc"
