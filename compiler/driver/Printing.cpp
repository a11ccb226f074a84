#include "compiler/driver/Printing.h"

#include "compiler/diagnostics/PlanReport.h"
#include "compiler/frontend/DiagnosticReports.h"
#include "mlir/IR/Location.h"

#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace occl::driver {

using diagnostics::Range;
using diagnostics::Report;

static void printJson(const Report &report, DiagnosticFormat format) {
  if (format == DiagnosticFormat::Json)
    llvm::errs() << toJson(report) << '\n';
}

void print(const frontend::DiagnosticEngine &diagnostics, const frontend::SourceManager &sources,
           DiagnosticFormat format) {
  if (format == DiagnosticFormat::Text) {
    llvm::errs() << diagnostics.render();
    return;
  }
  for (const Report &report : frontend::reportsOf(diagnostics, sources))
    printJson(report, format);
}

/// Passes, the reader of plans and the exporter end their messages in the code, as it is shown to
/// people.
static void setMessage(Report &report, llvm::StringRef message) {
  auto [text, code] = message.rsplit(" [");
  bool hasCode = code.size() == 5 && (code[0] == 'E' || code[0] == 'W') && code.ends_with("]");
  report.message = (hasCode ? text : message).str();
  if (hasCode)
    report.code = code.drop_back().str();
}

/// The file and line that an op comes from; the file that was compiled, if it has none.
static Range rangeOf(Location location, const std::string &path) {
  auto place = dyn_cast<FileLineColLoc>(location);
  if (!place)
    return {.file = path};
  return {place.getFilename().str(), place.getLine(), place.getColumn(), place.getLine(),
          place.getColumn()};
}

static Report reportOf(Diagnostic &diagnostic, const std::string &path) {
  Report report;
  if (diagnostic.getSeverity() != DiagnosticSeverity::Error)
    report.severity = diagnostics::Severity::Warning;
  setMessage(report, diagnostic.str());
  report.range = rangeOf(diagnostic.getLocation(), path);
  for (Diagnostic &note : diagnostic.getNotes())
    report.notes.push_back({rangeOf(note.getLocation(), path), note.str()});
  return report;
}

/// As compilers do: file:line:column: error: message.
static void printText(llvm::StringRef severity, const Range &range, const Diagnostic &diagnostic) {
  llvm::errs() << range.file << ':';
  if (range.line > 0)
    llvm::errs() << range.line << ':' << range.column << ':';
  llvm::errs() << ' ' << severity << ": " << diagnostic << '\n';
}

void print(Diagnostic &diagnostic, const std::string &path, DiagnosticFormat format) {
  if (format != DiagnosticFormat::Text)
    return printJson(reportOf(diagnostic, path), format);
  bool isError = diagnostic.getSeverity() == DiagnosticSeverity::Error;
  printText(isError ? "error" : "warning", rangeOf(diagnostic.getLocation(), path), diagnostic);
  for (Diagnostic &note : diagnostic.getNotes())
    printText("note", rangeOf(note.getLocation(), path), note);
}

void print(const plan::Plan &plan, const plan::VerifyResult &result, const std::string &path,
           DiagnosticFormat format) {
  if (format != DiagnosticFormat::Text)
    return printJson(diagnostics::reportOf(plan, *result.error, path), format);
  llvm::errs() << path << ": error: the plan is wrong\n" << result.text();
}

void printWarning(const std::string &message, frontend::SourceRange place,
                  const frontend::SourceManager &sources, DiagnosticFormat format) {
  Report report{.severity = diagnostics::Severity::Warning};
  setMessage(report, message);
  report.range = frontend::rangeOf(place, sources);
  if (format != DiagnosticFormat::Text)
    return printJson(report, format);
  if (report.range)
    llvm::errs() << report.range->file << ':' << report.range->line << ':' << report.range->column
                 << ": ";
  llvm::errs() << "warning: " << message << '\n';
}

void printError(const std::string &message, DiagnosticFormat format) {
  if (format != DiagnosticFormat::Text) {
    Report report;
    setMessage(report, message);
    return printJson(report, format);
  }
  llvm::errs() << "error: " << message << '\n';
}

} // namespace occl::driver
