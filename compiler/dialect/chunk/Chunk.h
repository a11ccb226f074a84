// The chunk dialect: what moves. ChunkOps.td documents the ops.
#pragma once

#include "compiler/dialect/chunk/ChunkAssembly.h"
#include "compiler/dialect/chunk/ChunkProgram.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"

#include "compiler/dialect/chunk/ChunkDialect.h.inc"

#define GET_OP_CLASSES
#include "compiler/dialect/chunk/ChunkOps.h.inc"
