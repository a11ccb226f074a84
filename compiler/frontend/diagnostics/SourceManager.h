// The texts of a compilation and the places in them.
#pragma once

#include "compiler/frontend/diagnostics/Overlay.h"

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace occl::frontend {

using FileId = uint32_t;

/// Bytes [begin, end) of a file. A default range is no place at all.
struct SourceRange {
  static constexpr FileId kNoFile = ~0u;

  FileId file = kNoFile;
  uint32_t begin = 0;
  uint32_t end = 0;

  bool isValid() const { return file != kNoFile; }
  bool operator==(const SourceRange &) const = default;
};

/// From the beginning of `first` to the end of `last`, which lie in the same file.
inline SourceRange join(SourceRange first, SourceRange last) {
  return {first.file, first.begin, last.end > first.begin ? last.end : first.end};
}

/// line and column count from 1; columns count bytes.
struct LineColumn {
  uint32_t line = 1;
  uint32_t column = 1;
};

/// Owns every text; what it returns stays valid as long as it lives. Not thread-safe.
class SourceManager {
public:
  /// Larger files are refused: no hand-written program comes near.
  static constexpr uint64_t kMaxFileBytes = 16u << 20;

  SourceManager() = default;
  /// Takes what is in `overlay`, which lives longer, for what is on disk; null: nothing.
  explicit SourceManager(const Overlay *overlay) : overlay(overlay) {}

  /// A UTF-8 byte order mark at the beginning, which some editors write, is no part of the text.
  FileId addText(std::string name, std::string text);

  /// Whether addFile would find a regular file there.
  bool hasFile(const std::string &path) const;

  /// Reads a file; nullopt with a reason in `error` if that fails or the file is too large.
  std::optional<FileId> addFile(const std::string &path, std::string &error);

  size_t numFiles() const { return files.size(); }
  std::string_view name(FileId file) const { return files[file].name; }
  std::string_view text(FileId file) const { return files[file].text; }
  std::string_view text(SourceRange range) const {
    return text(range.file).substr(range.begin, range.end - range.begin);
  }

  LineColumn lineColumn(FileId file, uint32_t offset) const;
  /// Without its line break; line counts from 1 and exists.
  std::string_view lineText(FileId file, uint32_t line) const;

private:
  struct File {
    std::string name;
    std::string text;
    std::vector<uint32_t> lineStarts;
  };
  std::deque<File> files;
  const Overlay *overlay = nullptr;
};

} // namespace occl::frontend
