#include "tools/occl-lsp/features/diagnostics.h"

#include "tools/occl-lsp/workspace/places.h"

#include <algorithm>

namespace occl::lsp {
namespace {

using frontend::DiagnosticCode;
using protocol::DiagnosticSeverity;

class Converter {
public:
  Converter(Workspace &workspace, Document &document)
      : analysis(workspace.analyse(document)), places(workspace, document, analysis) {}

  std::vector<Diagnostic> all() {
    std::vector<Diagnostic> found;
    for (size_t run = 0; run < analysis.diagnostics.size(); ++run)
      for (const frontend::Diagnostic &diagnostic : analysis.diagnostics[run].all())
        if (Diagnostic converted = convert(diagnostic, run > 0); !isKnown(found, converted))
          found.push_back(std::move(converted));
    return found;
  }

private:
  /// Versions of an algorithm repeat each other's mistakes.
  static bool isKnown(const std::vector<Diagnostic> &found, const Diagnostic &one) {
    return std::any_of(found.begin(), found.end(), [&](const Diagnostic &other) {
      return other.code == one.code && other.range == one.range && other.message == one.message;
    });
  }

  Diagnostic convert(const frontend::Diagnostic &diagnostic, bool isOfRun) {
    // From the frontend's own diagnostics to the protocol's: code, text, severity, place, notes.
    Diagnostic result;
    result.source = "occl";
    result.code = frontend::codeOf(diagnostic.code);
    result.message = diagnostic.message;
    result.severity = frontend::isWarning(diagnostic.code) ? DiagnosticSeverity::Warning
                                                           : DiagnosticSeverity::Error;
    // Executing an algorithm needs values that an editor may not have: what is missing then is no
    // mistake of the text.
    if (isOfRun)
      explainRun(diagnostic.code, result);
    // Editors grey out what has this tag.
    if (diagnostic.code == DiagnosticCode::UnusedName)
      result.tags.push_back(protocol::DiagnosticTag::Unnecessary);
    place(diagnostic, result);
    // Notes of places in files become links; others are appended to the text.
    for (const frontend::Note &note : diagnostic.notes)
      addNote(note.range, note.message, result);
    // Texts quote sources, which need not be UTF-8, and JSON has to be.
    result.message = llvm::json::fixUTF8(result.message);
    return result;
  }

  /// What is no mistake in the text.
  static void explainRun(DiagnosticCode code, Diagnostic &result) {
    bool needsMore = code == DiagnosticCode::MissingValue || code == DiagnosticCode::TopologyNeeded;
    if (needsMore || code == DiagnosticCode::BudgetSpent)
      result.severity = DiagnosticSeverity::Information;
    if (needsMore)
      result.message = "only names and types are checked: " + result.message;
    if (code == DiagnosticCode::BudgetSpent)
      result.message = "not checked further while you type, but by occlc check: " + result.message;
  }

  void place(const frontend::Diagnostic &diagnostic, Diagnostic &result) {
    frontend::SourceRange range = diagnostic.range;
    if (places.isOwn(range))
      result.range = places.own(range);
    else if (range.isValid())
      placeElsewhere(diagnostic, result);
  }

  /// Where a note leads there from; else the import that does, or the first one, if it is another
  /// one's.
  void placeElsewhere(const frontend::Diagnostic &diagnostic, Diagnostic &result) {
    // The mistake is in an imported file, but the editor shows only this one: so it is shown at the
    // line that leads there.
    const std::vector<frontend::ImportDecl> &imports = analysis.program.main().imports;
    auto isDirect = [&](const auto &import) { return import.file == diagnostic.range.file; };
    auto isOwn = [&](const auto &note) { return places.isOwn(note.range); };
    auto note = std::find_if(diagnostic.notes.begin(), diagnostic.notes.end(), isOwn);
    auto direct = std::find_if(imports.begin(), imports.end(), isDirect);
    if (note != diagnostic.notes.end())
      result.range = places.own(note->range);
    else if (direct != imports.end())
      result.range = places.own(direct->range);
    else if (!imports.empty())
      result.range = places.own(imports.front().range);
    // The real place, if it has one that an editor can open, is a link.
    if (!places.locationOf(diagnostic.range))
      return;
    std::string name(analysis.sources.name(diagnostic.range.file));
    addNote(diagnostic.range, result.message, result);
    result.message = "in '" + name + "': " + result.message;
  }

  void addNote(frontend::SourceRange range, const std::string &message, Diagnostic &result) {
    std::optional<protocol::Location> location = places.locationOf(range);
    if (!location) {
      result.message += "\n" + message;
      return;
    }
    if (!result.relatedInformation)
      result.relatedInformation.emplace();
    result.relatedInformation->emplace_back(*location, llvm::json::fixUTF8(message));
  }

  const Analysis &analysis;
  Places places;
};

} // namespace

std::vector<Diagnostic> diagnosticsOf(Workspace &workspace, Document &document) {
  return Converter(workspace, document).all();
}

std::vector<protocol::CodeAction> fixesOf(Workspace &workspace, Document &document,
                                          protocol::Range range) {
  const Analysis &analysis = workspace.analyse(document);
  // Fixes are made anew from the diagnostics: nothing is kept between requests, so nothing is out
  // of date.
  Places places(workspace, document, analysis);
  std::vector<protocol::CodeAction> actions;
  for (const frontend::DiagnosticEngine &engine : analysis.diagnostics)
    for (const frontend::Diagnostic &diagnostic : engine.all())
      for (const frontend::FixIt &fix : diagnostic.fixIts) {
        protocol::Range place = places.isOwn(fix.range) ? places.own(fix.range) : protocol::Range();
        // Editors ask for a range, often that of the cursor alone; touching is enough.
        bool touches =
            places.isOwn(fix.range) && place.start <= range.end && range.start <= place.end;
        if (!touches)
          continue;
        protocol::CodeAction &action = actions.emplace_back();
        action.title = llvm::json::fixUTF8("write '" + fix.text + "'");
        action.kind = protocol::CodeAction::kQuickFix.str();
        action.isPreferred = true;
        action.edit.emplace().changes[document.uri.uri().str()] = {
            {place, llvm::json::fixUTF8(fix.text)}};
      }
  return actions;
}

} // namespace occl::lsp
