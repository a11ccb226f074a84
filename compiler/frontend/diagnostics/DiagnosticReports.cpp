#include "compiler/frontend/diagnostics/DiagnosticReports.h"

namespace occl::frontend {

std::optional<diagnostics::Range> rangeOf(SourceRange range, const SourceManager &sources) {
  if (!range.isValid())
    return std::nullopt;
  LineColumn begin = sources.lineColumn(range.file, range.begin);
  LineColumn end = sources.lineColumn(range.file, range.end);
  return diagnostics::Range{std::string(sources.name(range.file)), begin.line, begin.column,
                            end.line, end.column};
}

static diagnostics::Report reportOf(const Diagnostic &diagnostic, const SourceManager &sources) {
  diagnostics::Report report;
  if (isWarning(diagnostic.code))
    report.severity = diagnostics::Severity::Warning;
  report.code = codeOf(diagnostic.code);
  report.message = diagnostic.message;
  report.range = rangeOf(diagnostic.range, sources);
  for (const Note &note : diagnostic.notes)
    report.notes.push_back({rangeOf(note.range, sources), note.message});
  for (const FixIt &fixIt : diagnostic.fixIts)
    if (auto range = rangeOf(fixIt.range, sources))
      report.fixIts.push_back({*range, fixIt.text});
  return report;
}

std::vector<diagnostics::Report> reportsOf(const DiagnosticEngine &engine,
                                           const SourceManager &sources) {
  std::vector<diagnostics::Report> reports;
  for (const Diagnostic &diagnostic : engine.all())
    reports.push_back(reportOf(diagnostic, sources));
  return reports;
}

} // namespace occl::frontend
