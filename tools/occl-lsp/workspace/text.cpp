#include "tools/occl-lsp/workspace/text.h"

#include "llvm/Support/ConvertUTF.h"

#include <algorithm>

namespace occl::lsp {
namespace {

struct Character {
  size_t bytes;
  int units; // of UTF-16
};

/// Of valid UTF-8, or else one byte.
Character characterAt(std::string_view text, size_t at) {
  const auto *begin = reinterpret_cast<const llvm::UTF8 *>(text.data() + at);
  const auto *end = reinterpret_cast<const llvm::UTF8 *>(text.data() + text.size());
  if (*begin < 0x80 || !llvm::isLegalUTF8Sequence(begin, end))
    return {1, 1};
  size_t bytes = llvm::getNumBytesForUTF8(*begin);
  return {bytes, bytes == 4 ? 2 : 1};
}

} // namespace

Text::Text(std::string given) : text(std::move(given)) { setLines(); }

void Text::setLines() {
  mark = std::string_view(text).starts_with("\xef\xbb\xbf") ? 3 : 0;
  lineStarts.assign(1, 0);
  for (size_t i = 0; i < text.size(); ++i)
    if (text[i] == '\n' || (text[i] == '\r' && (i + 1 == text.size() || text[i + 1] != '\n')))
      lineStarts.push_back(i + 1);
}

size_t Text::byteOf(protocol::Position position) const {
  if (position.line < 0)
    return 0;
  if (static_cast<size_t>(position.line) >= lineStarts.size())
    return text.size();
  size_t at = lineStarts[static_cast<size_t>(position.line)];
  int column = 0;
  while (at < text.size() && text[at] != '\n' && text[at] != '\r') {
    Character next = characterAt(text, at);
    column += next.units;
    if (column > position.character)
      break;
    at += next.bytes;
  }
  return at;
}

uint32_t Text::offsetOf(protocol::Position position) const {
  return static_cast<uint32_t>(std::max<size_t>(byteOf(position), mark) - mark);
}

protocol::Position Text::positionOf(uint32_t offset) const {
  size_t byte = std::min<size_t>(size_t{offset} + mark, text.size());
  auto next = std::upper_bound(lineStarts.begin(), lineStarts.end(), byte);
  protocol::Position position(static_cast<int>(next - lineStarts.begin()) - 1, 0);
  for (size_t at = *(next - 1); at < byte;) {
    Character character = characterAt(text, at);
    at += character.bytes;
    position.character += at <= byte ? character.units : 0;
  }
  return position;
}

protocol::Range Text::all() const {
  return {{0, 0}, positionOf(static_cast<uint32_t>(text.size() - mark))};
}

void Text::apply(const protocol::TextDocumentContentChangeEvent &change) {
  if (change.range) {
    size_t begin = byteOf(change.range->start), end = byteOf(change.range->end);
    text.replace(std::min(begin, end), std::max(begin, end) - std::min(begin, end), change.text);
  } else {
    text = change.text;
  }
  setLines();
}

} // namespace occl::lsp
