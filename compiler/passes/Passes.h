// The passes of Passes.td: constructors, option structs, registration.
#pragma once

#include "compiler/dialect/chunk/Chunk.h"
#include "compiler/dialect/inst/Inst.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace occl::passes {

#define GEN_PASS_DECL
#include "compiler/passes/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "compiler/passes/Passes.h.inc"

} // namespace occl::passes
