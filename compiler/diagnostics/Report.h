// What went wrong, in a form that programs can read: the same for errors of the source, of passes,
// of plans, of imported files and of the command line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace occl::diagnostics {

enum class Severity : uint8_t { Error, Warning };

class SourceText;

/// From (line, column) up to, not including, (endLine, endColumn); all count from 1, columns in
/// bytes. A place without extent has equal ends; a whole file has line 0.
struct Range {
  std::string file;
  uint32_t line = 0;
  uint32_t column = 0;
  uint32_t endLine = 0;
  uint32_t endColumn = 0;
};

struct Note {
  std::optional<Range> range;
  std::string message;
};

/// Replacing what `range` covers by `text` mends the error, as far as one can tell.
struct FixIt {
  Range range;
  std::string text;
};

struct Report {
  Severity severity = Severity::Error;
  /// "E012"; never changes its meaning.
  std::string code = {};
  std::string message = {};
  std::optional<Range> range = {};
  std::vector<Note> notes = {};
  std::vector<FixIt> fixIts = {};
  /// Where in a plan: "rank", "threadBlock", "instruction", as far as they are known.
  std::vector<std::pair<std::string, uint64_t>> context = {};
};

/// For people: place, message and code, the line with a caret, replacements, notes. Ends in a line
/// break.
std::string toText(const Report &report, SourceText &sources);

/// One JSON object on one line, without line break at its end; keys that would be empty are left
/// out. docs/tools.md has the schema.
std::string toJson(const Report &report);

} // namespace occl::diagnostics
