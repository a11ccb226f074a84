// Prints what went wrong, in the format and to where it was asked for.
#pragma once

#include "compiler/driver/Compiler.h"
#include "compiler/frontend/diagnostics/Diagnostics.h"

#include "mlir/IR/Diagnostics.h"

#include <string>

namespace occl::driver {

void print(const frontend::DiagnosticEngine &diagnostics, const frontend::SourceManager &sources,
           const Output &output);

/// `path` is the place of what has none. A message that ends in "[E123]" has that code.
void print(mlir::Diagnostic &diagnostic, const std::string &path, const Output &output);

/// Of a plan of our own that is wrong; `path` is its source.
void print(const plan::Plan &plan, const plan::VerifyResult &result, const std::string &path,
           const Output &output);

/// Of the plan in the file `path`, which is wrong.
void printOfFile(const plan::Plan &plan, const plan::VerifyResult &result, const std::string &path,
                 const Output &output);

/// `message` is what plan::readPlanFile(path) says.
void printUnreadablePlan(const std::string &message, const std::string &path, const Output &output);

/// `place` may be no place.
void printWarning(const std::string &message, frontend::SourceRange place,
                  const frontend::SourceManager &sources, const Output &output);

/// Of something that has no place in a file. A message that ends in "[E123]" has that code.
void printError(const std::string &message, const Output &output);

} // namespace occl::driver
