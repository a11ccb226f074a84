#include "tools/occlc/output.h"

#include "compiler/driver/Printing.h"
#include "plan/writer.h"

#include <iostream>

namespace occl::tools {

driver::DiagnosticFormat &diagnosticFormat() {
  static driver::DiagnosticFormat format = driver::DiagnosticFormat::Text;
  return format;
}

int fail(const std::string &message) {
  driver::printError(message, diagnosticFormat());
  return 1;
}

int reportWritten(const plan::Status &status) { return status ? 0 : fail(status.message()); }

int writePlan(const plan::Plan &plan, const std::string &path) {
  return reportWritten(path == "-" ? plan::writePlan(plan, plan::Format::Json, std::cout)
                                   : plan::writePlanFile(plan, path));
}

std::string withNewline(std::string text) {
  if (text.empty() || text.back() != '\n')
    text += '\n';
  return text;
}

} // namespace occl::tools
