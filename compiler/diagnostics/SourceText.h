// Files that errors point into, read again when there is an error: to show the line, and to find
// out how far what begins at a place extends.
#pragma once

#include "compiler/diagnostics/Report.h"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace occl::diagnostics {

/// Keeps what it has read. Files that cannot be read, or are larger than kMaxFileBytes, have no
/// lines. Not thread-safe.
class SourceText {
public:
  static constexpr uint64_t kMaxFileBytes = 256u << 20;

  /// The text of a file that is not the one on disk, or null; valid until the call after it.
  using Unsaved = std::function<const std::string *(const std::string &path)>;

  explicit SourceText(Unsaved unsaved = nullptr) : unsaved(std::move(unsaved)) {}

  /// Without line break; line counts from 1.
  std::optional<std::string_view> line(const std::string &file, uint32_t line);

  /// `range` with the end of the chunk expression that begins there, such as `input[0].copy(s[0])`,
  /// if it has no extent yet and its file can be read.
  Range withEnd(Range range);

  /// Where `path`, such as "ranks[3].threadBlocks[0][7].op", stands in a JSON file: a member with
  /// its key. As much of the path as there is; nothing of files that are no JSON.
  std::optional<Range> jsonPlace(const std::string &file, std::string_view path);

  /// The byte with this offset.
  std::optional<Range> byteAt(const std::string &file, size_t offset);

private:
  struct File {
    std::string text;
    std::vector<size_t> lineStarts; // empty: could not be read
  };

  const File &open(const std::string &file);
  Range rangeOf(const std::string &name, const File &file, size_t begin, size_t end) const;

  Unsaved unsaved; // may be empty
  std::map<std::string, File> files;
};

} // namespace occl::diagnostics
