// The operations of a chunk.program as plain data: the property of its op, and what the passes work
// on.
#pragma once

#include "compiler/dialect/FlatForm.h"
#include "plan/model/plan.h"

#include "mlir/IR/Location.h"
#include "llvm/ADT/ArrayRef.h"

#include <cstdint>
#include <vector>

namespace occl::chunk {

/// A read, copy or reduction: its value is the content of `count` chunks of `buffer`
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
  mlir::LocationAttr location; // not null in IR

  bool operator==(const ChunkOp &) const = default;
};

/// The operations of all ranks in textual order; they are named by their positions.
struct ChunkProgram {
  std::vector<ChunkOp> ops;
  std::vector<uint32_t> sources; // of all ops: earlier ones, with as many chunks

  bool operator==(const ChunkProgram &) const = default;

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

/// What FlatForm.h asks for of a property.
dialect::FlatForm flatten(const ChunkProgram &program);
bool unflatten(const dialect::FlatForm &flat, ChunkProgram &program);

} // namespace occl::chunk
