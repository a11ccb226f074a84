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

/// The length of the byte order mark.
uint32_t markOf(std::string_view text) { return text.starts_with("\xef\xbb\xbf") ? 3 : 0; }

} // namespace

Text::Text(std::string given) : text(std::move(given)) { setStops(); }

void Text::setStops() {
  mark = markOf(text);
  stops.assign(1, {0, 0, 0});
  while (addStop()) {
  }
}

bool Text::addStop() {
  // Stops are byte offsets with known line and column: at each line's begin, and within long lines
  // every so often. From one of them any position is near.
  constexpr size_t kMostBetween = 512;
  const size_t last = stops.back().byte;
  // Character by character, as columns count UTF-16 units and bytes are UTF-8.
  for (Stop at = stops.back(); at.byte < text.size();) {
    Character character = characterAt(text, at.byte);
    bool isReturn = text[at.byte] == '\r';
    at.byte += character.bytes;
    at.column += character.units;
    // "\r\n" is one line end, and no stop may fall between its two characters.
    bool isPair = isReturn && at.byte < text.size() && text[at.byte] == '\n';
    bool isEnd = text[at.byte - 1] == '\n' || (isReturn && !isPair);
    if (isEnd)
      at = {at.byte, at.line + 1, 0};
    if (isEnd || (!isPair && at.byte - last >= kMostBetween)) {
      stops.push_back(at);
      return true;
    }
  }
  return false;
}

void Text::replace(size_t begin, size_t end, const std::string &with) {
  constexpr size_t kMostBytes = 4; // of a character
  const std::vector<Stop> old = std::move(stops);
  text.replace(begin, end - begin, with);
  mark = markOf(text);
  // An edit in a long file must not cost the whole file: editors send one for each key.
  // What comes before stays; what begins with a line behind it moves.
  auto isBefore = [&](const Stop &stop) { return stop.byte + kMostBytes <= begin; };
  stops.assign(old.begin(), std::partition_point(old.begin(), old.end(), isBefore));
  if (stops.empty())
    stops.push_back({0, 0, 0});
  auto next = std::partition_point(old.begin(), old.end(),
                                   [&](const Stop &stop) { return stop.byte <= end; });
  auto moved = [&](const Stop &stop) { return stop.byte - end + begin + with.size(); };
  // Behind the edit stops are made anew until one meets an old one at the begin of a line: from
  // there on all old ones hold, moved by the same bytes and lines.
  while (addStop()) {
    const Stop last = stops.back();
    while (next != old.end() && (next->column != 0 || moved(*next) < last.byte))
      ++next;
    if (last.column != 0 || next == old.end() || moved(*next) != last.byte)
      continue;
    const int lines = last.line - next->line;
    for (++next; next != old.end(); ++next)
      stops.push_back({moved(*next), next->line + lines, next->column});
    return;
  }
}

size_t Text::byteOf(protocol::Position position) const {
  // Positions of clients may lie outside of the text, and are then taken to the nearest place in
  // it.
  if (position.line < 0)
    return 0;
  auto isBefore = [&](const Stop &stop) {
    return stop.line < position.line ||
           (stop.line == position.line && stop.column <= std::max(position.character, 0));
  };
  // The last stop at or before the position; there is always one, as the first is at 0.
  const Stop &stop = *std::prev(std::partition_point(stops.begin(), stops.end(), isBefore));
  if (stop.line < position.line)
    return text.size();
  size_t at = stop.byte;
  int column = stop.column;
  // From there on character by character, to the end of the line at most.
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
  // Offsets of the frontend do not count the byte order mark.
  size_t byte = std::min<size_t>(size_t{offset} + mark, text.size());
  auto next = std::partition_point(stops.begin(), stops.end(),
                                   [&](const Stop &stop) { return stop.byte <= byte; });
  const Stop &stop = *std::prev(next);
  protocol::Position position(stop.line, stop.column);
  for (size_t at = stop.byte; at < byte;) {
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
  if (!change.range) {
    text = change.text;
    return setStops();
  }
  size_t begin = byteOf(change.range->start), end = byteOf(change.range->end);
  replace(std::min(begin, end), std::max(begin, end), change.text);
}

} // namespace occl::lsp
