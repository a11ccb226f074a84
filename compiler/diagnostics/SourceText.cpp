#include "compiler/diagnostics/SourceText.h"

#include "compiler/diagnostics/JsonPlace.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <utility>

namespace occl::diagnostics {

namespace {

/// As the frontend counts columns: a byte order mark is no part of the text.
std::string withoutMark(std::string text) {
  if (constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf"; text.starts_with(kByteOrderMark))
    text.erase(0, kByteOrderMark.size());
  return text;
}

/// As long as it is a regular file of at most SourceText::kMaxFileBytes.
std::optional<std::string> readFile(const std::string &path) {
  std::error_code problem;
  if (!std::filesystem::is_regular_file(path, problem))
    // What is named in a plan file may be anything; devices are not opened.
    return std::nullopt;
  uintmax_t size = std::filesystem::file_size(path, problem);
  if (problem || size > SourceText::kMaxFileBytes)
    return std::nullopt;
  std::ifstream stream(path, std::ios::binary);
  std::string text(size, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(size));
  text.resize(static_cast<size_t>(stream.gcount()));
  return withoutMark(std::move(text));
}

bool isNamePart(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

bool isBlank(char c) { return std::isspace(static_cast<unsigned char>(c)); }

/// The end of the names, dots and brackets that follow each other from `begin` on.
size_t endOfExpression(std::string_view text, size_t begin) {
  // Places of the IR have a begin only. The expression that begins there is what its first word and
  // the brackets behind it are.
  size_t depth = 0, end = begin;
  for (size_t i = begin; i < text.size(); ++i) {
    char c = text[i];
    if (c == '(' || c == '[') {
      ++depth;
    } else if (c == ')' || c == ']') {
      if (depth == 0)
        break;
      --depth;
    } else if (depth == 0 && !isNamePart(c) && c != '.' && !isBlank(c)) {
      break;
    } else if (depth == 0 && i > end && isNamePart(c) && (end == begin || text[end - 1] != '.')) {
      break; // another word after a blank
    }
    if (depth == 0 && !isBlank(c))
      end = i + 1;
  }
  return end;
}

} // namespace

const SourceText::File &SourceText::open(const std::string &name) {
  // Each file is read once, also if it cannot be read: errors may point into it often.
  auto [found, isNew] = files.try_emplace(name);
  File &file = found->second;
  if (!isNew)
    return file;
  const std::string *given = unsaved ? unsaved(name) : nullptr;
  std::optional<std::string> text = given ? withoutMark(*given) : readFile(name);
  if (!text)
    return file;
  file.text = std::move(*text);
  // Where lines begin, so that a line and column are found by bisection.
  file.lineStarts.push_back(0);
  for (size_t i = 0; i < file.text.size(); ++i)
    if (file.text[i] == '\n')
      file.lineStarts.push_back(i + 1);
  return file;
}

std::optional<std::string_view> SourceText::line(const std::string &name, uint32_t line) {
  const File &file = open(name);
  if (line == 0 || line > file.lineStarts.size())
    return std::nullopt;
  std::string_view rest = std::string_view(file.text).substr(file.lineStarts[line - 1]);
  rest = rest.substr(0, rest.find('\n'));
  return rest.ends_with('\r') ? rest.substr(0, rest.size() - 1) : rest;
}

Range SourceText::rangeOf(const std::string &name, const File &file, size_t begin,
                          size_t end) const {
  auto place = [&](size_t offset) {
    auto next = std::upper_bound(file.lineStarts.begin(), file.lineStarts.end(), offset);
    return std::pair(static_cast<uint32_t>(next - file.lineStarts.begin()),
                     static_cast<uint32_t>(offset - *(next - 1) + 1));
  };
  auto [line, column] = place(begin);
  auto [endLine, endColumn] = place(end);
  return {name, line, column, endLine, endColumn};
}

Range SourceText::withEnd(Range range) {
  // It has an end already, or there is no line.
  if (range.line == 0 || range.endLine != range.line || range.endColumn != range.column)
    return range;
  const File &file = open(range.file);
  if (range.line > file.lineStarts.size())
    return range;
  size_t begin = file.lineStarts[range.line - 1] + range.column - 1;
  if (begin >= file.text.size())
    return range;
  return rangeOf(range.file, file, begin, endOfExpression(file.text, begin));
}

std::optional<Range> SourceText::jsonPlace(const std::string &name, std::string_view path) {
  const File &file = open(name);
  std::optional<JsonSpan> span = findInJson(file.text, path);
  if (!span)
    return std::nullopt;
  return rangeOf(name, file, span->begin, span->end);
}

std::optional<Range> SourceText::byteAt(const std::string &name, size_t offset) {
  const File &file = open(name);
  if (offset >= file.text.size())
    return std::nullopt;
  return rangeOf(name, file, offset, offset + 1);
}

} // namespace occl::diagnostics
