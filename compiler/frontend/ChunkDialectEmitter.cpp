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

ChunkDialectEmitter::ChunkDialectEmitter(mlir::MLIRContext &context, const SourceManager &sources)
    : sources(sources), builder(&context), block(std::make_unique<mlir::Block>()) {
  context.loadDialect<chunk::ChunkDialect>();
  module = mlir::ModuleOp::create(builder.getUnknownLoc());
  builder.setInsertionPointToEnd(block.get());
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
  return builder
      .create<chunk::CopyOp>(location(place), mlir::Value::getFromOpaquePointer(source),
                             destination.rank, kindOf(destination.buffer), destination.index)
      .getResult()
      .getAsOpaquePointer();
}

ChunkHandle ChunkDialectEmitter::reduce(std::span<const ChunkHandle> from,
                                        const ChunkRange &destination, SourceRange place) {
  llvm::SmallVector<mlir::Value, 8> values;
  for (ChunkHandle handle : from)
    values.push_back(mlir::Value::getFromOpaquePointer(handle));
  return builder
      .create<chunk::ReduceOp>(location(place), values, destination.rank,
                               kindOf(destination.buffer), destination.index)
      .getResult()
      .getAsOpaquePointer();
}

mlir::OwningOpRef<mlir::ModuleOp> ChunkDialectEmitter::finish(const ProgramInfo &info,
                                                              const std::string &sourceHash) {
  llvm::SmallVector<int32_t> scratch(info.numRanks, static_cast<int32_t>(info.scratchChunks));
  builder.setInsertionPointToEnd(module->getBody());
  auto program = builder.create<chunk::ProgramOp>(
      builder.getUnknownLoc(), info.name, info.collective, toSigned(info.inputChunks),
      toSigned(info.outputChunks), scratch, info.inPlaceOffsets);
  program.setPartChunks(info.partChunks);
  program.setRoot(info.root);
  program.setOutOfPlace(info.outOfPlace);
  program.setInPlace(info.inPlace);
  llvm::SmallVector<llvm::StringRef> names;
  llvm::SmallVector<int64_t> values;
  for (const auto &[name, value] : info.parameters) {
    names.push_back(name);
    values.push_back(value);
  }
  program.setParameterNamesAttr(builder.getStrArrayAttr(names));
  program.setParameterValues(values);
  program.setRequirements(info.requirements);
  program.setSourceHash(sourceHash);
  mlir::Block &body = program.getBody().front();
  body.getOperations().splice(body.end(), block->getOperations());
  return std::move(module);
}

} // namespace occl::frontend
