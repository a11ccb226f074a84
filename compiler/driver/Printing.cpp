#include "compiler/driver/Printing.h"

#include "compiler/diagnostics/PlanReport.h"
#include "compiler/diagnostics/SourceText.h"
#include "compiler/frontend/diagnostics/DiagnosticReports.h"
#include "mlir/IR/Location.h"

#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace occl::driver {

using diagnostics::Range;
using diagnostics::Report;
using diagnostics::SourceText;

static llvm::raw_ostream &streamOf(const Output &output) {
  return output.stream ? *output.stream : llvm::errs();
}

/// Files as they are on disk, or in an editor.
static SourceText textsOf(const Output &output) {
  return SourceText([overlay = output.overlay](const std::string &path) {
    return overlay ? overlay->find(path) : nullptr;
  });
}

static void printJson(const Report &report, const Output &output) {
  if (output.format == DiagnosticFormat::Json)
    streamOf(output) << toJson(report) << '\n';
}

void print(const frontend::DiagnosticEngine &diagnostics, const frontend::SourceManager &sources,
           const Output &output) {
  // The frontend's own text has carets and replacements.
  if (output.format == DiagnosticFormat::Text) {
    streamOf(output) << diagnostics.render();
    return;
  }
  for (const Report &report : frontend::reportsOf(diagnostics, sources))
    printJson(report, output);
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
static Range rangeOf(Location location, const std::string &path, SourceText &sources) {
  auto place = dyn_cast<FileLineColLoc>(location);
  if (!place)
    return {.file = path};
  return sources.withEnd({place.getFilename().str(), place.getLine(), place.getColumn(),
                          place.getLine(), place.getColumn()});
}

static Report reportOf(Diagnostic &diagnostic, const std::string &path, SourceText &sources) {
  // From MLIR's diagnostics to a report; the code is the end of the message.
  Report report;
  if (diagnostic.getSeverity() != DiagnosticSeverity::Error)
    report.severity = diagnostics::Severity::Warning;
  setMessage(report, diagnostic.str());
  report.range = rangeOf(diagnostic.getLocation(), path, sources);
  for (Diagnostic &note : diagnostic.getNotes())
    report.notes.push_back({rangeOf(note.getLocation(), path, sources), note.str()});
  return report;
}

static void printReport(const Report &report, SourceText &sources, const Output &output) {
  if (output.format == DiagnosticFormat::Text)
    streamOf(output) << toText(report, sources);
  else
    printJson(report, output);
}

void print(Diagnostic &diagnostic, const std::string &path, const Output &output) {
  SourceText sources = textsOf(output);
  printReport(reportOf(diagnostic, path, sources), sources, output);
}

static void printPlanError(Report report, const plan::VerifyResult &result, SourceText &sources,
                           const Output &output) {
  if (output.format == DiagnosticFormat::Text)
    report = forPeople(std::move(report), result);
  printReport(report, sources, output);
}

void print(const plan::Plan &plan, const plan::VerifyResult &result, const std::string &path,
           const Output &output) {
  // Ends of ranges are not in plans and are found in the sources, for the carets.
  SourceText sources = textsOf(output);
  Report report = diagnostics::reportOf(plan, *result.error, path);
  report.range = sources.withEnd(*report.range);
  for (diagnostics::Note &note : report.notes)
    if (note.range)
      note.range = sources.withEnd(*note.range);
  printPlanError(std::move(report), result, sources, output);
}

void printOfFile(const plan::Plan &plan, const plan::VerifyResult &result, const std::string &path,
                 const Output &output) {
  SourceText sources = textsOf(output);
  printPlanError(diagnostics::reportInFile(plan, *result.error, path, sources), result, sources,
                 output);
}

void printUnreadablePlan(const std::string &message, const std::string &path,
                         const Output &output) {
  SourceText sources = textsOf(output);
  printReport(diagnostics::reportOfReading(message, path, sources), sources, output);
}

void printWarning(const std::string &message, frontend::SourceRange place,
                  const frontend::SourceManager &sources, const Output &output) {
  Report report{.severity = diagnostics::Severity::Warning};
  setMessage(report, message);
  report.range = frontend::rangeOf(place, sources);
  SourceText files = textsOf(output);
  printReport(report, files, output);
}

void printError(const std::string &message, const Output &output) {
  Report report;
  setMessage(report, message);
  SourceText sources = textsOf(output);
  printReport(report, sources, output);
}

} // namespace occl::driver
