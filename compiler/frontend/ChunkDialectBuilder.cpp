#include "compiler/frontend/ChunkDialectBuilder.h"

#include "compiler/dialect/chunk/Chunk.h"

#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/SmallVector.h"

namespace occl::frontend {
namespace {

plan::OperandKind kindOf(BufferKind buffer) {
  switch (buffer) {
  case BufferKind::Input:
    return plan::OperandKind::Input;
  case BufferKind::Output:
    return plan::OperandKind::Output;
  case BufferKind::Scratch:
    return plan::OperandKind::Scratch;
  }
  return plan::OperandKind::Input;
}

llvm::SmallVector<int32_t> toSigned(const std::vector<uint32_t> &values) {
  return {values.begin(), values.end()};
}

} // namespace

ChunkDialectBuilder::ChunkDialectBuilder(mlir::MLIRContext &context, const SourceManager &sources,
                                         FileId mainFile)
    : sources(sources), mainFile(mainFile), builder(&context) {
  context.loadDialect<chunk::ChunkDialect>();
}

mlir::Location ChunkDialectBuilder::location(SourceRange place) {
  // Locations are made once for each place: the same statement is executed thousands of times.
  uint64_t key = static_cast<uint64_t>(place.file) << 32 | place.begin;
  auto known = locations.find(key);
  if (known != locations.end())
    return known->second;
  LineColumn at = sources.lineColumn(place.file, place.begin);
  std::string_view name = sources.name(place.file);
  mlir::Location result = mlir::FileLineColLoc::get(
      builder.getContext(), llvm::StringRef(name.data(), name.size()), at.line, at.column);
  locations.try_emplace(key, result);
  return result;
}

chunk::ChunkOp ChunkDialectBuilder::makeOp(chunk::ChunkOp::Kind kind, const ChunkRange &range,
                                           SourceRange place) {
  chunk::ChunkOp op;
  op.kind = kind;
  op.buffer = kindOf(range.buffer);
  op.rank = static_cast<int32_t>(range.rank);
  op.index = static_cast<int32_t>(range.index);
  op.count = static_cast<int32_t>(range.count);
  op.location = location(place);
  return op;
}

ChunkHandle ChunkDialectBuilder::store(chunk::ChunkOp::Kind kind, llvm::ArrayRef<ChunkHandle> from,
                                       const ChunkRange &destination, SourceRange place) {
  // Hints are looked up when something is stored under them, as many blocks of hints have nothing
  // inside.
  if (areHintsNew)
    recordHints();
  chunk::ChunkOp op = makeOp(kind, destination, place);
  op.channel = hints.channel;
  op.hint = hint;
  return chunks.add(op, from);
}

ChunkHandle ChunkDialectBuilder::read(const ChunkRange &source, SourceRange place) {
  return chunks.add(makeOp(chunk::ChunkOp::Kind::Read, source, place), {});
}

ChunkHandle ChunkDialectBuilder::copy(ChunkHandle source, const ChunkRange &destination,
                                      SourceRange place) {
  return store(chunk::ChunkOp::Kind::Copy, source, destination, place);
}

ChunkHandle ChunkDialectBuilder::reduce(std::span<const ChunkHandle> from,
                                        const ChunkRange &destination, SourceRange place) {
  return store(chunk::ChunkOp::Kind::Reduce, {from.data(), from.size()}, destination, place);
}

void ChunkDialectBuilder::recordHints() {
  // Usual hints have no record, and equal ones share one: most programs have none or few.
  areHintsNew = false;
  dialect::HintRecord record{hints.parallel, hints.aggregate, hints.sendBlock, hints.recvBlock};
  if (record == dialect::HintRecord()) {
    hint = -1;
    return;
  }
  auto next = static_cast<int32_t>(recordNumbers.size());
  auto [known, isNew] = recordNumbers.try_emplace(
      {record.parallel, record.aggregate, record.sendBlock, record.recvBlock}, next);
  if (isNew)
    dialect::appendHint(records, record);
  hint = known->second;
}

mlir::OwningOpRef<mlir::ModuleOp> ChunkDialectBuilder::finish(const ProgramInfo &info,
                                                              const std::string &sourceHash) {
  // Only now sizes are known: scratch is declared while the program runs.
  auto module = mlir::OwningOpRef(mlir::ModuleOp::create(builder.getUnknownLoc()));
  builder.setInsertionPointToEnd(module->getBody());
  mlir::Location place = mlir::NameLoc::get(builder.getStringAttr(sources.name(mainFile)));
  auto program = builder.create<chunk::ProgramOp>(
      place, info.name, info.collective, toSigned(info.inputChunks), toSigned(info.outputChunks),
      toSigned(info.scratchChunks), info.inPlaceOffsets);
  program.setPartChunks(info.partChunks);
  program.setRoot(info.root);
  program.setOutOfPlace(info.outOfPlace);
  program.setInPlace(info.inPlace);
  // The parameters' values are part of what the plan says of itself.
  llvm::SmallVector<llvm::StringRef> names;
  llvm::SmallVector<int64_t> values;
  for (const auto &[name, value] : info.parameters) {
    names.push_back(name);
    values.push_back(value);
  }
  program.setParameterNamesAttr(builder.getStrArrayAttr(names));
  program.setParameterValues(values);
  program.setRequirements(info.requirements);
  program.setHints(records);
  program.setProtocol(info.protocol);
  program.setMinBytes(info.minBytes);
  if (info.maxBytes != kUnboundedBytes)
    program.setMaxBytes(info.maxBytes);
  program.setSourceHash(sourceHash);
  if (!info.isStandard && info.requirements.empty())
    chunks = {}; // what nobody asks for need not be done
  program.getMutableOperations() = std::move(chunks);
  return module;
}

} // namespace occl::frontend
