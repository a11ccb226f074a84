#include "compiler/diagnostics/Report.h"
#include "compiler/diagnostics/Snippet.h"
#include "compiler/diagnostics/SourceText.h"

namespace occl::diagnostics {

static void appendPlace(const std::optional<Range> &range, std::string &out) {
  if (!range || range->file.empty())
    return;
  out += range->file + ":";
  if (range->line > 0)
    out += std::to_string(range->line) + ":" + std::to_string(range->column) + ":";
  out += " ";
}

static void appendLine(const std::optional<Range> &range, SourceText &sources, std::string &out) {
  if (!range || range->line == 0)
    return;
  std::optional<std::string_view> line = sources.line(range->file, range->line);
  if (!line)
    return;
  // A range over several lines is marked to the end of the first one.
  size_t end = range->endLine > range->line ? line->size() + 1 : range->endColumn;
  out += snippet(*line, range->column, end > range->column ? end - range->column : 1);
}

std::string toText(const Report &report, SourceText &sources) {
  // As compilers print it: place, severity, message, code; then the line with a caret, replacements
  // below it, and the notes.
  std::string out;
  appendPlace(report.range, out);
  out += report.severity == Severity::Error ? "error: " : "warning: ";
  out += report.message + (report.code.empty() ? "" : " [" + report.code + "]") + "\n";
  appendLine(report.range, sources, out);
  for (const FixIt &fixIt : report.fixIts)
    // Long lines are cut, and a replacement behind the cut would stand nowhere.
    if (fixIt.range.column > 0 && fixIt.range.column <= kMaxShownLine)
      out += std::string(fixIt.range.column - 1, ' ') + fixIt.text + "\n";
  for (const Note &note : report.notes) {
    appendPlace(note.range, out);
    out += "note: " + note.message + "\n";
    appendLine(note.range, sources, out);
  }
  return out;
}

} // namespace occl::diagnostics
