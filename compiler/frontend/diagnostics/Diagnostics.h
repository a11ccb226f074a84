// Errors with a place, in the style of clang: collected while compiling, printed together at the
// end.
#pragma once

#include "compiler/frontend/diagnostics/SourceManager.h"

#include <deque>
#include <span>
#include <string>
#include <vector>

namespace occl::frontend {

enum class DiagnosticCode : uint16_t {
#define OCCL_DIAGNOSTIC(code, name, summary) name,
#include "compiler/frontend/diagnostics/Diagnostics.def"
};

/// "E012": never changes its meaning from one version to the next.
const char *codeOf(DiagnosticCode code);
/// What the code means, in a few words.
const char *summaryOf(DiagnosticCode code);
/// Whether the code, which then begins with W, is no mistake for certain.
bool isWarning(DiagnosticCode code);
/// Every code: errors in ascending order, then warnings.
std::span<const DiagnosticCode> allDiagnosticCodes();

struct Note {
  SourceRange range; // may be no place
  std::string message;
};

/// Replacing the text of `range` by `text` makes the program right, as far as one can tell.
struct FixIt {
  SourceRange range;
  std::string text;
};

struct Diagnostic {
  DiagnosticCode code;
  SourceRange range;
  std::string message;
  std::vector<Note> notes;
  std::vector<FixIt> fixIts;

  Diagnostic &note(SourceRange place, std::string text) {
    notes.push_back({place, std::move(text)});
    return *this;
  }
  Diagnostic &fixIt(SourceRange place, std::string text) {
    fixIts.push_back({place, std::move(text)});
    return *this;
  }
};

/// Collects the errors of one compilation, or its warnings as long as there is no error. At most
/// kMaxErrors are kept, and one of each code at each place: a loop repeats its mistakes. Not
/// thread-safe.
class DiagnosticEngine {
public:
  static constexpr size_t kMaxErrors = 20;

  explicit DiagnosticEngine(const SourceManager &sources) : sources(sources) {}

  /// The result may be given notes until the next call; it is a dummy if the error is a repetition
  /// or one too many. The code may be one of a warning.
  Diagnostic &error(DiagnosticCode code, SourceRange range, std::string message);

  /// Adds a note to the last error, if there is one.
  void noteLast(SourceRange place, std::string text) {
    if (!diagnostics.empty())
      diagnostics.back().note(place, std::move(text));
  }

  bool hasErrors() const { return errors > 0; }
  size_t numErrors() const { return errors; }
  size_t numWarnings() const { return diagnostics.size() - errors; }
  /// More errors would not be kept: stop looking.
  bool isFull() const { return errors >= kMaxErrors; }
  const std::deque<Diagnostic> &all() const { return diagnostics; }

  /// All of them in the order of their discovery, and a last line that counts them; empty without
  /// any.
  std::string render() const;

private:
  bool isRepetition(DiagnosticCode code, SourceRange range) const;

  const SourceManager &sources;
  std::deque<Diagnostic> diagnostics;
  size_t errors = 0;
  Diagnostic dummy{};
};

} // namespace occl::frontend
