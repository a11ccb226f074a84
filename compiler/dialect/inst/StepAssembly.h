// The textual form of a rank's steps.
#pragma once

#include "compiler/dialect/inst/Step.h"

#include "mlir/IR/OpImplementation.h"

#include <string>

namespace occl::inst {

/// How an instruction of this opcode begins, as "inst.recv_copy_send".
std::string nameOf(plan::Opcode opcode);

/// The hooks of `custom<Steps>`.
mlir::ParseResult parseSteps(mlir::OpAsmParser &parser, Steps &steps);
void printSteps(mlir::OpAsmPrinter &printer, mlir::Operation *op, const Steps &steps);

} // namespace occl::inst
