#include "compiler/frontend/ChunkDialectEmitter.h"

#include "compiler/dialect/Chunk.h"

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

ChunkDialectEmitter::ChunkDialectEmitter(mlir::MLIRContext &context, const SourceManager &sources,
                                         FileId mainFile)
    : sources(sources), mainFile(mainFile), builder(&context) {
  context.loadDialect<chunk::ChunkDialect>();
  module = mlir::ModuleOp::create(builder.getUnknownLoc());
  builder.setInsertionPointToEnd(module->getBody());
  auto empty = builder.create<chunk::ProgramOp>(
      builder.getUnknownLoc(), "", "", llvm::ArrayRef<int32_t>(), llvm::ArrayRef<int32_t>(),
      llvm::ArrayRef<int32_t>(), llvm::ArrayRef<int32_t>());
  program = empty;
  builder.setInsertionPointToEnd(&empty.getBody().front());
}

mlir::Location ChunkDialectEmitter::location(SourceRange place) {
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

ChunkHandle ChunkDialectEmitter::read(const ChunkRange &source, SourceRange place) {
  return builder
      .create<chunk::ReadOp>(location(place), source.rank, kindOf(source.buffer), source.index,
                             source.count)
      .getResult()
      .getAsOpaquePointer();
}

ChunkHandle ChunkDialectEmitter::copy(ChunkHandle source, const ChunkRange &destination,
                                      SourceRange place) {
  if (areHintsNew)
    recordHints();
  return builder
      .create<chunk::CopyOp>(location(place), mlir::Value::getFromOpaquePointer(source),
                             destination.rank, kindOf(destination.buffer), destination.index,
                             hints.channel, hint)
      .getResult()
      .getAsOpaquePointer();
}

ChunkHandle ChunkDialectEmitter::reduce(std::span<const ChunkHandle> from,
                                        const ChunkRange &destination, SourceRange place) {
  if (areHintsNew)
    recordHints();
  llvm::SmallVector<mlir::Value, 8> values;
  for (ChunkHandle handle : from)
    values.push_back(mlir::Value::getFromOpaquePointer(handle));
  return builder
      .create<chunk::ReduceOp>(location(place), values, destination.rank,
                               kindOf(destination.buffer), destination.index, hints.channel, hint)
      .getResult()
      .getAsOpaquePointer();
}

void ChunkDialectEmitter::recordHints() {
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

mlir::OwningOpRef<mlir::ModuleOp> ChunkDialectEmitter::finish(const ProgramInfo &info,
                                                              const std::string &sourceHash) {
  auto header = mlir::cast<chunk::ProgramOp>(program);
  header.setAlgorithm(info.name);
  header.setCollective(info.collective);
  header.setNumRanks(info.numRanks);
  header.setInputChunks(toSigned(info.inputChunks));
  header.setOutputChunks(toSigned(info.outputChunks));
  header.setScratchChunks(toSigned(info.scratchChunks));
  header.setInPlaceOffsets(info.inPlaceOffsets);
  header.setPartChunks(info.partChunks);
  header.setRoot(info.root);
  header.setOutOfPlace(info.outOfPlace);
  header.setInPlace(info.inPlace);
  llvm::SmallVector<llvm::StringRef> names;
  llvm::SmallVector<int64_t> values;
  for (const auto &[name, value] : info.parameters) {
    names.push_back(name);
    values.push_back(value);
  }
  header.setParameterNamesAttr(builder.getStrArrayAttr(names));
  header.setParameterValues(values);
  header.setRequirements(info.requirements);
  header.setHints(records);
  header.setProtocol(info.protocol);
  header.setMinBytes(info.minBytes);
  if (info.maxBytes != kUnboundedBytes)
    header.setMaxBytes(info.maxBytes);
  header.setSourceHash(sourceHash);
  program->setLoc(mlir::NameLoc::get(builder.getStringAttr(sources.name(mainFile))));
  return std::move(module);
}

} // namespace occl::frontend
