// Any text as a .coll file: if it can be formatted, only blanks change and a byte order mark is
// gone, and formatting again changes nothing.
#include "compiler/format/Formatter.h"

#include <cctype>
#include <cstddef>
#include <cstdlib>
#include <string_view>

using namespace occl;

static std::optional<std::string> formatted(const std::string &text) {
  frontend::SourceManager sources;
  frontend::DiagnosticEngine diagnostics(sources);
  return format::format(sources, sources.addText("fuzz.coll", text), diagnostics);
}

static std::string inkOf(std::string text) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.starts_with(kByteOrderMark))
    text.erase(0, kByteOrderMark.size());
  std::erase_if(text, [](unsigned char c) { return std::isspace(c); });
  return text;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string text(reinterpret_cast<const char *>(data), size);
  std::optional<std::string> once = formatted(text);
  if (once && (inkOf(*once) != inkOf(text) || formatted(*once) != once))
    std::abort();
  return 0;
}
