// The textual form of a program's operations.
#pragma once

#include "compiler/dialect/chunk/ChunkProgram.h"

#include "mlir/IR/OpImplementation.h"

namespace occl::chunk {

/// "chunk.read", "chunk.copy" or "chunk.reduce".
llvm::StringRef nameOf(ChunkOp::Kind kind);

/// The hooks of `custom<Operations>`.
mlir::ParseResult parseOperations(mlir::OpAsmParser &parser, ChunkProgram &program);
void printOperations(mlir::OpAsmPrinter &printer, mlir::Operation *op, const ChunkProgram &program);

} // namespace occl::chunk
