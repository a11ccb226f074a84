// The header that programs of both dialects have (ProgramHeader.td), seen as plain data.
#pragma once

#include "compiler/dialect/FlatForm.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Operation.h"
#include "plan/model/plan.h"

#include <cstdint>
#include <optional>

namespace occl::dialect {

struct ProgramHeader {
  llvm::StringRef algorithm, collective;
  int32_t numRanks = 0, partChunks = 1, root = 0;
  llvm::ArrayRef<int32_t> inputChunks, outputChunks, scratchChunks, inPlaceOffsets;
  bool outOfPlace = true, inPlace = true;
  mlir::ArrayAttr parameterNames;
  llvm::ArrayRef<int64_t> parameterValues;
  llvm::ArrayRef<int32_t> requirements;
  llvm::StringRef protocol;
  int32_t depth = 2;
  int64_t minBytes = 0, maxBytes = -1;
  llvm::StringRef sourceHash;
  int32_t channel = -1;

  llvm::ArrayRef<int32_t> sizesOf(plan::OperandKind buffer) const {
    return buffer == plan::OperandKind::Input    ? inputChunks
           : buffer == plan::OperandKind::Output ? outputChunks
                                                 : scratchChunks;
  }
};

/// The header of a program op of either dialect; refers to the op's attributes.
template <typename ProgramOp> ProgramHeader headerOf(ProgramOp op) {
  // In the order of the struct's members. Both dialects have the same attributes, by
  // ProgramHeader.td, so that one function serves both.
  return {op.getAlgorithm(),
          op.getCollective(),
          static_cast<int32_t>(op.getNumRanks()),
          static_cast<int32_t>(op.getPartChunks()),
          static_cast<int32_t>(op.getRoot()),
          op.getInputChunks(),
          op.getOutputChunks(),
          op.getScratchChunks(),
          op.getInPlaceOffsets(),
          op.getOutOfPlace(),
          op.getInPlace(),
          op.getParameterNames(),
          op.getParameterValues(),
          op.getRequirements(),
          op.getProtocol(),
          static_cast<int32_t>(op.getDepth()),
          static_cast<int64_t>(op.getMinBytes()),
          static_cast<int64_t>(op.getMaxBytes()),
          op.getSourceHash(),
          static_cast<int32_t>(op.getChannel())};
}

/// Checks everything that a header says; errors are emitted on `op`.
mlir::LogicalResult verifyHeader(mlir::Operation *op, const ProgramHeader &header);

/// Checks that [index, index + count) lies in `buffer` of `rank`, and that `rank` exists.
mlir::LogicalResult verifyRange(EmitError emitError, const ProgramHeader &header, int32_t rank,
                                plan::OperandKind buffer, int32_t index, int32_t count);

/// "input", "output" or "scratch".
llvm::StringRef bufferName(plan::OperandKind buffer);

/// The buffer of that name.
std::optional<plan::OperandKind> bufferNamed(llvm::StringRef name);

/// The protocol of that name (simple, ll, ll128).
std::optional<plan::Protocol> parseProtocol(llvm::StringRef name);

} // namespace occl::dialect
