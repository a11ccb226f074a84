#include "support/text/wrapped.h"

#include <algorithm>

namespace occl {

namespace {

size_t columnsOf(std::string_view text) {
  // All bytes of a code point of UTF-8 but its first begin with the bits 10.
  return static_cast<size_t>(
      std::ranges::count_if(text, [](char byte) { return (byte & 0xC0) != 0x80; }));
}

void appendLine(std::string &to, std::string_view line, size_t indent, size_t columns) {
  size_t used = 0; // columns of the line that is being written
  bool isBegun = false;
  while (!line.empty()) {
    // The next word with the blanks before it; at the end of a line there may be blanks alone.
    const size_t begin = line.find_first_not_of(' ');
    const size_t end = begin == std::string_view::npos
                           ? line.size()
                           : std::min(line.find(' ', begin), line.size());
    std::string_view word = line.substr(0, end);
    if (isBegun && begin != std::string_view::npos && used + columnsOf(word) > columns) {
      to += '\n';
      to.append(indent, ' ');
      used = indent;
      word.remove_prefix(begin);
    }
    to += word;
    used += columnsOf(word);
    isBegun = true;
    line.remove_prefix(end);
  }
}

} // namespace

std::string wrapped(std::string_view text, size_t indent, size_t columns) {
  std::string result;
  for (;;) {
    const size_t end = text.find('\n');
    appendLine(result, text.substr(0, end), indent, columns);
    if (end == std::string_view::npos)
      return result;
    result += '\n';
    text.remove_prefix(end + 1);
  }
}

} // namespace occl
