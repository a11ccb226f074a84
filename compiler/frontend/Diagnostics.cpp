#include "compiler/frontend/Diagnostics.h"

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
#include "compiler/frontend/Diagnostics.def"
};

constexpr DiagnosticCode kAllCodes[] = {
#define OCCL_DIAGNOSTIC(code, name, summary) DiagnosticCode::name,
#include "compiler/frontend/Diagnostics.def"
};

/// Longer lines are cut, so that a hostile file cannot flood the terminal.
constexpr size_t kMaxLine = 200;

/// A source line without what a terminal would obey: control characters become blanks.
std::string printable(std::string_view line) {
  std::string result(line.substr(0, kMaxLine));
  for (char &c : result)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      c = ' ';
  return result;
}

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
  std::string line = printable(sources.lineText(range.file, place.line));
  if (place.column > line.size() + 1)
    return;
  size_t rest = line.size() - (place.column - 1);
  size_t length = std::max<size_t>(range.end - range.begin, 1);
  size_t tildes = rest == 0 ? 0 : std::min(length, rest) - 1;
  out += line + "\n" + std::string(place.column - 1, ' ') + "^" + std::string(tildes, '~') + "\n";
}

void renderFixIts(const Diagnostic &diagnostic, const SourceManager &sources, std::string &out) {
  for (const FixIt &fix : diagnostic.fixIts) {
    uint32_t column = sources.lineColumn(fix.range.file, fix.range.begin).column;
    if (column <= kMaxLine)
      out += std::string(column - 1, ' ') + fix.text + "\n";
  }
}

} // namespace

const char *codeOf(DiagnosticCode code) { return kCodes[static_cast<size_t>(code)].code; }
const char *summaryOf(DiagnosticCode code) { return kCodes[static_cast<size_t>(code)].summary; }
std::span<const DiagnosticCode> allDiagnosticCodes() { return kAllCodes; }

bool isWarning(DiagnosticCode code) { return codeOf(code)[0] == 'W'; }

Diagnostic &DiagnosticEngine::error(DiagnosticCode code, SourceRange range, std::string message) {
  bool isOneTooMany = isWarning(code) ? hasErrors() || numWarnings() >= kMaxErrors : isFull();
  if (isOneTooMany || isRepetition(code, range)) {
    dummy = Diagnostic{};
    return dummy;
  }
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
  size_t count = diagnostics.size();
  out += std::to_string(count) + (hasErrors() ? " error" : " warning") + (count == 1 ? "" : "s");
  out += count >= kMaxErrors ? ", and perhaps more.\n" : ".\n";
  return out;
}

} // namespace occl::frontend
