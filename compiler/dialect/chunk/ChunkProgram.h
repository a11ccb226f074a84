// A chunk.program's operations as plain data, and the way out of and into IR.
#pragma once

#include "compiler/dialect/chunk/Chunk.h"

#include "mlir/IR/Location.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <cstdint>
#include <vector>

namespace occl::chunk {

/// A chunk.read, chunk.copy or chunk.reduce: its value is the content of `count` chunks of `buffer`
/// of `rank`, from `index` on.
struct ChunkOp {
  enum class Kind : uint8_t { Read, Copy, Reduce };

  Kind kind = Kind::Read;
  plan::OperandKind buffer = plan::OperandKind::Input;
  bool final = false; // of a reduction
  int32_t rank = 0;
  int32_t index = 0;
  int32_t count = 1;
  int32_t channel = -1; // of copies and reductions
  int32_t hint = -1;
  uint32_t firstSource = 0; // in the program's sources
  uint32_t numSources = 0;
  mlir::LocationAttr location;
};

/// The operations of all ranks in textual order; they are named by their positions.
struct ChunkProgram {
  std::vector<ChunkOp> ops;
  std::vector<uint32_t> sources; // of all ops: earlier ones, with as many chunks

  llvm::ArrayRef<uint32_t> sourcesOf(const ChunkOp &op) const {
    return llvm::ArrayRef(sources).slice(op.firstSource, op.numSources);
  }
  /// Appends `op`, with these sources; returns its position.
  uint32_t add(ChunkOp op, llvm::ArrayRef<uint32_t> from) {
    op.firstSource = static_cast<uint32_t>(sources.size());
    op.numSources = static_cast<uint32_t>(from.size());
    sources.insert(sources.end(), from.begin(), from.end());
    ops.push_back(op);
    return static_cast<uint32_t>(ops.size() - 1);
  }
};

/// From now on, programs of this context are handed on as data: storeChunks leaves the op with an
/// empty body and keeps its operations beside it. Millions of ops are not made only to be read and
/// freed by the next pass. `context` has loaded the chunk dialect.
void keepChunks(mlir::MLIRContext &context);

/// The operations of `program`; its verifier accepts it unless they are kept. Kept ones are handed
/// over: until the next storeChunks `program` is without them.
ChunkProgram takeChunks(ProgramOp program);

/// Replaces the operations of `program`.
void storeChunks(ChunkProgram &&chunks, ProgramOp program);

/// Calls fn with the operations of `program`, which stay where they are.
void readChunks(ProgramOp program, llvm::function_ref<void(const ChunkProgram &)> fn);

/// Writes the operations that are kept, and keeps nothing from now on; for whoever looks at IR.
void writeKeptChunks(mlir::MLIRContext &context);

} // namespace occl::chunk
