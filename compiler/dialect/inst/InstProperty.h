// How an Instruction is stored in IR: as an attribute (generic textual form only), in bytecode,
// hashed, checked.
#pragma once

#include "compiler/dialect/Properties.h"
#include "compiler/dialect/inst/Instruction.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"

#include "llvm/ADT/Hashing.h"

namespace occl::inst {

mlir::Attribute toAttribute(mlir::MLIRContext *context, const Instruction &instruction);
mlir::LogicalResult fromAttribute(Instruction &instruction, mlir::Attribute attribute,
                                  dialect::EmitError emitError);
llvm::hash_code hashInstruction(const Instruction &instruction);
void writeInstruction(mlir::DialectBytecodeWriter &writer, const Instruction &instruction);
mlir::LogicalResult readInstruction(mlir::DialectBytecodeReader &reader, Instruction &instruction);

/// The check of every instruction op: shape, ranges, extent.
mlir::LogicalResult verifyInstruction(mlir::Operation *op);

} // namespace occl::inst
