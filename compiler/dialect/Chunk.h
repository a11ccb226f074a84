// The chunk dialect: what moves. ChunkOps.td documents the ops.
#pragma once

#include "compiler/dialect/Properties.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"

#include "compiler/dialect/ChunkDialect.h.inc"
#include "compiler/dialect/ChunkInterfaces.h.inc"

#define GET_TYPEDEF_CLASSES
#include "compiler/dialect/ChunkTypes.h.inc"

#define GET_OP_CLASSES
#include "compiler/dialect/ChunkOps.h.inc"
