// The inst dialect: who moves what. InstOps.td documents the ops.
#pragma once

#include "compiler/dialect/inst/Step.h"
#include "compiler/dialect/inst/StepAssembly.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"

#include "compiler/dialect/inst/InstDialect.h.inc"

#define GET_OP_CLASSES
#include "compiler/dialect/inst/InstOps.h.inc"
