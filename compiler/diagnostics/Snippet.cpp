#include "compiler/diagnostics/Snippet.h"

#include <algorithm>

namespace occl::diagnostics {

static std::string printable(std::string_view line) {
  std::string result(line.substr(0, kMaxShownLine));
  for (char &c : result)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      c = ' ';
  return result;
}

std::string snippet(std::string_view line, uint32_t column, size_t length) {
  std::string shown = printable(line);
  if (column > shown.size() + 1)
    return "";
  size_t rest = shown.size() - (column - 1);
  size_t tildes = rest == 0 ? 0 : std::min(std::max<size_t>(length, 1), rest) - 1;
  return shown + "\n" + std::string(column - 1, ' ') + "^" + std::string(tildes, '~') + "\n";
}

} // namespace occl::diagnostics
