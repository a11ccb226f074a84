// Elaborated operations as a program of the chunk dialect.
#pragma once

#include "compiler/dialect/Hints.h"
#include "compiler/dialect/chunk/ChunkProgram.h"
#include "compiler/frontend/memory/ChunkSink.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"

#include <array>
#include <map>

namespace occl::frontend {

/// Handles are positions in the program. The context and the sources outlive it.
class ChunkDialectBuilder : public ChunkSink {
public:
  /// Loads the chunk dialect. The program is located at `mainFile`, one of `sources`.
  ChunkDialectBuilder(mlir::MLIRContext &context, const SourceManager &sources, FileId mainFile);

  ChunkHandle read(const ChunkRange &source, SourceRange place) override;
  ChunkHandle copy(ChunkHandle source, const ChunkRange &destination, SourceRange place) override;
  ChunkHandle reduce(std::span<const ChunkHandle> from, const ChunkRange &destination,
                     SourceRange place) override;
  void useHints(const Hints &next) override {
    areHintsNew |= !(hints == next);
    hints = next;
  }

  /// A module of one chunk.program that holds what was emitted. Call once, last.
  mlir::OwningOpRef<mlir::ModuleOp> finish(const ProgramInfo &info, const std::string &sourceHash);

private:
  mlir::Location location(SourceRange place);
  /// An operation without hints.
  chunk::ChunkOp makeOp(chunk::ChunkOp::Kind kind, const ChunkRange &range, SourceRange place);
  /// A copy or reduction.
  ChunkHandle store(chunk::ChunkOp::Kind kind, llvm::ArrayRef<ChunkHandle> from,
                    const ChunkRange &destination, SourceRange place);
  /// Only hints that an operation follows get a record.
  void recordHints();

  const SourceManager &sources;
  FileId mainFile;
  mlir::OpBuilder builder;
  chunk::ChunkProgram chunks;
  llvm::DenseMap<uint64_t, mlir::Location> locations; // of expressions, by where they begin
  Hints hints;
  bool areHintsNew = false; // there is no record of them yet
  int32_t hint = -1;        // number of the record in force
  llvm::SmallVector<int32_t> records;
  std::map<std::array<int32_t, dialect::kHintFields>, int32_t> recordNumbers;
};

} // namespace occl::frontend
