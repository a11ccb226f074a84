// What the subcommands of occlc print and write.
#pragma once

#include "compiler/driver/Compiler.h"
#include "plan/model/plan.h"
#include "support/status.h"

#include <string>

namespace occl::tools {

/// How errors are printed, from the command line; main sets it once, before any command runs.
driver::DiagnosticFormat &diagnosticFormat();

/// Prints an error that has no place in a file to standard error; returns the exit status for an
/// error in the input.
int fail(const std::string &message);

/// Likewise, of a file that cannot be written, for this reason; without one for what the system
/// says now, if it says anything.
int failToWrite(const std::string &path, const std::string &reason = "");

/// Likewise, of a plan that a topology cannot run.
int failToPredict(const support::Status &status);

/// Hands on what was written to standard output; returns the exit status.
int flushOutput();

/// Of an attempt to write a plan: prints the error, if it is one; returns the exit status.
int reportWritten(const support::Status &status);

/// Writes a plan to a file, CBOR if its name ends in .cbor, or to standard output if it is "-".
/// Returns the exit status.
int writePlan(const plan::Plan &plan, const std::string &path);

/// What was proved of a plan, or how its options were chosen, with a line break at its end and
/// lines of at most 80 columns.
std::string forTerminal(std::string text);

} // namespace occl::tools
