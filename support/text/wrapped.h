// Text for a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace occl {

/// What a line for people has at most: what terminals begin with.
inline constexpr size_t kTerminalColumns = 80;

/// The text with its lines broken at blanks, so that none has more than `columns` columns; a word
/// that is longer alone stays whole. What is broken off stands behind `indent` blanks. Line breaks
/// of the text, the blanks at the beginning of its lines, and blanks between words of a line stay
/// as they are; a code point of UTF-8 is a column.
std::string wrapped(std::string_view text, size_t indent, size_t columns = kTerminalColumns);

} // namespace occl
