// Between inst IR and analysis::Program.
#pragma once

#include "compiler/analysis/Program.h"
#include "compiler/dialect/Inst.h"

namespace occl::analysis {

/// The program that `op`, which its verifier accepts, says.
Program readProgram(inst::ProgramOp op);

/// Makes `op` say `program`: replaces its ranks, and the header's depth, scratch sizes, uniformity
/// and connections. The rest of the header stays.
void writeProgram(const Program &program, inst::ProgramOp op);

} // namespace occl::analysis
