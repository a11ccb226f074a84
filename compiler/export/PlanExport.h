// inst IR to plans.
#pragma once

#include "compiler/dialect/inst/Inst.h"
#include "plan/model/plan.h"

namespace occl::exporter {

/// The plan that a scheduled program says, not yet verified. Emits an error on the program if a
/// pass has not run that has to: instructions without thread block, or transfers.
mlir::FailureOr<plan::Plan> exportPlan(inst::ProgramOp program);

} // namespace occl::exporter
