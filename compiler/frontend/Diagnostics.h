// Errors with a place, in the style of clang: collected while compiling, printed together at the
// end.
#pragma once

#include "compiler/frontend/SourceManager.h"

#include <deque>
#include <span>
#include <string>
#include <vector>

namespace occl::frontend {

enum class DiagnosticCode : uint16_t {
#define OCCL_DIAGNOSTIC(code, name, summary) name,
#include "compiler/frontend/Diagnostics.def"
};

/// "E012": never changes its meaning from one version to the next.
const char *codeOf(DiagnosticCode code);
/// What the code means, in a few words.
const char *summaryOf(DiagnosticCode code);
/// Every code, in ascending order.
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

/// Collects the errors of one compilation. At most kMaxErrors are kept, and one of each code at
/// each place: a loop repeats its mistakes. Not thread-safe.
class DiagnosticEngine {
public:
  static constexpr size_t kMaxErrors = 20;

  explicit DiagnosticEngine(const SourceManager &sources) : sources(sources) {}

  /// The result may be given notes until the next call; it is a dummy if the error is a repetition
  /// or one too many.
  Diagnostic &error(DiagnosticCode code, SourceRange range, std::string message);

  /// Adds a note to the last error, if there is one.
  void noteLast(SourceRange place, std::string text) {
    if (hasErrors())
      diagnostics.back().note(place, std::move(text));
  }

  bool hasErrors() const { return !diagnostics.empty(); }
  size_t numErrors() const { return diagnostics.size(); }
  /// More errors would not be kept: stop looking.
  bool isFull() const { return diagnostics.size() >= kMaxErrors; }
  const std::deque<Diagnostic> &all() const { return diagnostics; }

  /// All errors in the order of their discovery, and a last line that counts them; empty without
  /// errors.
  std::string render() const;

private:
  bool isRepetition(DiagnosticCode code, SourceRange range) const;

  const SourceManager &sources;
  std::deque<Diagnostic> diagnostics;
  Diagnostic dummy{};
};

} // namespace occl::frontend
