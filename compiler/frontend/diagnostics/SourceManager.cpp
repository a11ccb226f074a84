#include "compiler/frontend/diagnostics/SourceManager.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace occl::frontend {

FileId SourceManager::addText(std::string name, std::string text) {
  if (constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf"; text.starts_with(kByteOrderMark))
    text.erase(0, kByteOrderMark.size());
  File file{std::move(name), std::move(text), {0}};
  for (size_t i = 0; i < file.text.size(); ++i)
    if (file.text[i] == '\n')
      file.lineStarts.push_back(static_cast<uint32_t>(i + 1));
  files.push_back(std::move(file));
  return static_cast<FileId>(files.size() - 1);
}

bool SourceManager::hasFile(const std::string &path) const {
  std::error_code error;
  return (overlay && overlay->find(path)) || std::filesystem::is_regular_file(path, error);
}

std::optional<FileId> SourceManager::addFile(const std::string &path, std::string &error) {
  const std::string *unsaved = overlay ? overlay->find(path) : nullptr;
  if (unsaved && unsaved->size() <= kMaxFileBytes)
    return addText(path, *unsaved);
  if (unsaved) {
    error = "it is larger than 16 MiB";
    return std::nullopt;
  }
  std::error_code status;
  if (std::filesystem::is_directory(path, status)) {
    error = "it is a directory";
    return std::nullopt;
  }
  std::ifstream stream(path, std::ios::binary);
  if (!stream) {
    error = std::strerror(errno);
    return std::nullopt;
  }
  // Read in pieces: the size of a pipe or device is not known beforehand, and may have no end.
  std::string text;
  char piece[1 << 16];
  while (stream.read(piece, sizeof piece), stream.gcount() > 0) {
    text.append(piece, static_cast<size_t>(stream.gcount()));
    if (text.size() > kMaxFileBytes) {
      error = "it is larger than 16 MiB";
      return std::nullopt;
    }
  }
  return addText(path, std::move(text));
}

LineColumn SourceManager::lineColumn(FileId file, uint32_t offset) const {
  const std::vector<uint32_t> &starts = files[file].lineStarts;
  auto next = std::upper_bound(starts.begin(), starts.end(), offset);
  return {static_cast<uint32_t>(next - starts.begin()), offset - *(next - 1) + 1};
}

std::string_view SourceManager::lineText(FileId file, uint32_t line) const {
  const std::vector<uint32_t> &starts = files[file].lineStarts;
  std::string_view rest = std::string_view(files[file].text).substr(starts[line - 1]);
  rest = rest.substr(0, rest.find('\n'));
  return rest.ends_with('\r') ? rest.substr(0, rest.size() - 1) : rest;
}

} // namespace occl::frontend
