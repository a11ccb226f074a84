// What is wrong with a plan, as a report.
#pragma once

#include "compiler/diagnostics/Report.h"
#include "compiler/diagnostics/SourceText.h"
#include "plan/verify/verifier.h"

#include <string>

namespace occl::diagnostics {

/// What verifyPlan finds wrong in a plan of our own: `path` is its source, the place of what has no
/// source line. The witness becomes the notes.
Report reportOf(const plan::Plan &plan, const plan::VerifyError &error, const std::string &path);

/// The same of the plan in file `path`: the places are those in the file, if it is JSON, and a note
/// says where in the source the instruction at fault comes from.
Report reportInFile(const plan::Plan &plan, const plan::VerifyError &error, const std::string &path,
                    SourceText &files);

/// `message` is that of plan::readPlanFile(path): what is wrong with the file, and where.
Report reportOfReading(const std::string &message, const std::string &path, SourceText &files);

/// The report of `result`, which is an error, with the message that people see: which proof failed,
/// in which alias mode, and where.
Report forPeople(Report report, const plan::VerifyResult &result);

} // namespace occl::diagnostics
