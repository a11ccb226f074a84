// Moves programs out of inst IR and into it.
#pragma once

#include "compiler/analysis/Program.h"
#include "compiler/dialect/inst/Inst.h"

namespace occl::analysis {

/// The program that `op` says; its verifier accepts `op`. The steps are moved, not copied: until
/// storeProgram, the ranks of `op` have none.
Program takeProgram(inst::ProgramOp op);

/// Makes `op`, which has a rank for each of `program` or none at all, say `program`: its steps,
/// which are moved, and of the header depth, scratch sizes, uniformity, connections and the bound
/// of transfers. The rest of the header stays.
void storeProgram(Program &&program, inst::ProgramOp op);

} // namespace occl::analysis
