#include "tools/occlc/output.h"

#include "compiler/driver/Printing.h"
#include "plan/io/writer.h"
#include "support/text/wrapped.h"
#include "support/writable.h"

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

int failToWrite(const std::string &path, const std::string &reason) {
  const std::string why = reason.empty() ? whyNotWritable(path) : reason;
  return fail("cannot write '" + path + "'" + (why.empty() ? "" : ": " + why) + " [E027]");
}

int failToPredict(const support::Status &status) { return fail(status.message() + " [E085]"); }

int flushOutput() { return std::cout.flush() ? 0 : fail("cannot write to standard output [E027]"); }

int reportWritten(const support::Status &status) {
  return status ? 0 : fail(status.message() + " [E027]");
}

int writePlan(const plan::Plan &plan, const std::string &path) {
  if (path != "-")
    return reportWritten(plan::writePlanFile(plan, path));
  (void)plan::writePlan(plan, plan::Format::Json, std::cout); // what fails is the stream
  return flushOutput();
}

std::string forTerminal(std::string text) {
  if (text.empty() || text.back() != '\n')
    text += '\n';
  return wrapped(text, 4);
}

} // namespace occl::tools
