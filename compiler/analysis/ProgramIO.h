// Between inst IR and analysis::Program.
#pragma once

#include "compiler/analysis/Program.h"
#include "compiler/dialect/inst/Inst.h"

namespace occl::analysis {

/// From now on, passes over this context hand programs on as data: storeProgram leaves the op
/// without ranks and keeps its program beside it. Each pass does what it does otherwise; only what
/// would be written and at once read again is not. `context` has loaded the inst dialect.
void keepPrograms(mlir::MLIRContext &context);

/// The program that `op` says; its verifier accepts `op` unless its program is kept. A kept one is
/// handed over: until the next storeProgram `op` is without program.
Program takeProgram(inst::ProgramOp op);

/// Makes `op` say `program`: replaces its ranks, and the header's depth, scratch sizes, uniformity
/// and connections. The rest of the header stays.
void storeProgram(Program &&program, inst::ProgramOp op);

/// Writes the ranks of a program that is kept, and keeps nothing from now on; for whoever looks at
/// IR.
void writeKeptPrograms(mlir::MLIRContext &context);

} // namespace occl::analysis
