#include "support/text_check.h"

#include <algorithm>
#include <cstdint>

namespace occl::support {

namespace {

/// Bytes of the UTF-8 sequence at the front of `text`, or 0 if there is none.
size_t sequenceLength(std::string_view text) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  unsigned lead = byte(0);
  if (lead < 0x80)
    return 1;
  // 0x80 .. 0xc1 cannot lead: continuation bytes, and sequences of two for what fits in one byte.
  // Beyond 0xf4 would be code points above 0x10ffff.
  size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length)
    return 0;
  // The lead byte has length + 1 bits of prefix; its other bits are the highest of the code.
  uint32_t code = lead & (0x7fu >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80)
      return 0;
    code = code << 6 | (byte(i) & 0x3f);
  }
  // Overlong forms are refused, as they would let one text have several spellings; so are halves of
  // UTF-16 pairs, which are no characters.
  constexpr uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  bool isSurrogate = code >= 0xd800 && code <= 0xdfff;
  return code >= kSmallest[length] && code <= 0x10ffff && !isSurrogate ? length : 0;
}

/// The same, but 0 also for a control character.
size_t plainLength(std::string_view text) {
  auto first = static_cast<unsigned char>(text[0]);
  return first < 0x20 || first == 0x7f ? 0 : sequenceLength(text);
}

} // namespace

bool isPlainText(std::string_view text) {
  while (!text.empty()) {
    size_t length = plainLength(text);
    if (length == 0)
      return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string madePlain(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    size_t length = plainLength(text);
    result += length == 0 ? "?" : text.substr(0, length);
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return result;
}

std::string printable(std::string_view text) {
  constexpr size_t kLongest = 40;
  std::string result;
  for (char c : text.substr(0, kLongest))
    result += c >= ' ' && c < 0x7f ? c : '?';
  return text.size() > kLongest ? result + "..." : result;
}

} // namespace occl::support
