// What verifyPlan finds wrong, as a report.
#pragma once

#include "compiler/diagnostics/Report.h"
#include "plan/verifier.h"

#include <string>

namespace occl::diagnostics {

/// `path` is where the plan comes from, the place of what has no source line. The witness becomes
/// the notes.
Report reportOf(const plan::Plan &plan, const plan::VerifyError &error, const std::string &path);

} // namespace occl::diagnostics
