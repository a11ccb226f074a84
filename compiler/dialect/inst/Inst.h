// The inst dialect: who moves what. InstOps.td documents the ops.
#pragma once

#include "compiler/dialect/inst/InstProperty.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"

#include "compiler/dialect/inst/InstDialect.h.inc"
#include "compiler/dialect/inst/InstInterfaces.h.inc"

#define GET_TYPEDEF_CLASSES
#include "compiler/dialect/inst/InstTypes.h.inc"

#define GET_OP_CLASSES
#include "compiler/dialect/inst/InstOps.h.inc"

namespace occl::inst {

/// The full name of the op of a data instruction.
llvm::StringRef operationName(plan::Opcode opcode);

} // namespace occl::inst
