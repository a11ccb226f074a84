// The textual form that all instruction ops share.
#pragma once

#include "compiler/dialect/inst/Instruction.h"

#include "mlir/IR/OpImplementation.h"

namespace occl::inst {

mlir::ParseResult parseInstruction(mlir::OpAsmParser &parser, mlir::OperationState &state,
                                   Instruction &instruction);
void printInstruction(mlir::OpAsmPrinter &printer, mlir::Operation *op,
                      const Instruction &instruction);

} // namespace occl::inst
