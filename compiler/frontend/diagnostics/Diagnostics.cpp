#include "compiler/frontend/diagnostics/Diagnostics.h"

#include "compiler/diagnostics/Snippet.h"

#include <algorithm>
#include <array>

namespace occl::frontend {
namespace {

struct CodeInfo {
  const char *code;
  const char *summary;
};

constexpr CodeInfo kCodes[] = {
#define OCCL_DIAGNOSTIC(code, name, summary) {code, summary},
#include "compiler/frontend/diagnostics/Diagnostics.def"
};

constexpr DiagnosticCode kAllCodes[] = {
#define OCCL_DIAGNOSTIC(code, name, summary) DiagnosticCode::name,
#include "compiler/frontend/diagnostics/Diagnostics.def"
};

void renderPlace(const SourceManager &sources, SourceRange range, std::string &out) {
  if (!range.isValid())
    return;
  LineColumn place = sources.lineColumn(range.file, range.begin);
  out += std::string(sources.name(range.file)) + ":" + std::to_string(place.line) + ":" +
         std::to_string(place.column) + ": ";
}

/// The line, and under it a caret with tildes up to the end of the range.
void renderLine(const SourceManager &sources, SourceRange range, std::string &out) {
  if (!range.isValid())
    return;
  LineColumn place = sources.lineColumn(range.file, range.begin);
  out += diagnostics::snippet(sources.lineText(range.file, place.line), place.column,
                              range.end - range.begin);
}

void renderFixIts(const Diagnostic &diagnostic, const SourceManager &sources, std::string &out) {
  for (const FixIt &fix : diagnostic.fixIts) {
    uint32_t column = sources.lineColumn(fix.range.file, fix.range.begin).column;
    if (column <= diagnostics::kMaxShownLine)
      out += std::string(column - 1, ' ') + fix.text + "\n";
  }
}

} // namespace

const char *codeOf(DiagnosticCode code) { return kCodes[static_cast<size_t>(code)].code; }
const char *summaryOf(DiagnosticCode code) { return kCodes[static_cast<size_t>(code)].summary; }
std::span<const DiagnosticCode> allDiagnosticCodes() { return kAllCodes; }

bool isWarning(DiagnosticCode code) { return codeOf(code)[0] == 'W'; }

Diagnostic &DiagnosticEngine::error(DiagnosticCode code, SourceRange range, std::string message) {
  // Warnings are worth nothing once there are errors, and after many errors more do not help.
  bool isOneTooMany = isWarning(code) ? hasErrors() || numWarnings() >= kMaxErrors : isFull();
  if (isOneTooMany || isRepetition(code, range)) {
    dummy = Diagnostic{};
    return dummy;
  }
  // The first error removes the warnings that came before.
  if (!isWarning(code) && errors++ == 0)
    diagnostics.clear();
  return diagnostics.emplace_back(Diagnostic{code, range, std::move(message), {}, {}});
}

bool DiagnosticEngine::isRepetition(DiagnosticCode code, SourceRange range) const {
  return range.isValid() &&
         std::any_of(diagnostics.begin(), diagnostics.end(), [&](const Diagnostic &earlier) {
           return earlier.code == code && earlier.range == range;
         });
}

std::string DiagnosticEngine::render() const {
  // As clang prints it: place, message, code, the line with a caret, fixes, notes.
  std::string out;
  for (const Diagnostic &diagnostic : diagnostics) {
    renderPlace(sources, diagnostic.range, out);
    out += (isWarning(diagnostic.code) ? "warning: " : "error: ") + diagnostic.message + " [" +
           codeOf(diagnostic.code) + "]\n";
    renderLine(sources, diagnostic.range, out);
    renderFixIts(diagnostic, sources, out);
    for (const Note &note : diagnostic.notes) {
      renderPlace(sources, note.range, out);
      out += "note: " + note.message + "\n";
      renderLine(sources, note.range, out);
    }
  }
  if (diagnostics.empty())
    return out;
  // A summary in the end, as the list may be long.
  size_t count = diagnostics.size();
  out += std::to_string(count) + (hasErrors() ? " error" : " warning") + (count == 1 ? "" : "s");
  out += count >= kMaxErrors ? ", and perhaps more.\n" : ".\n";
  return out;
}

} // namespace occl::frontend
