// A source line with a caret, as errors show it to people.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace occl::diagnostics {

/// Longer lines are cut, so that a hostile file cannot flood the terminal.
inline constexpr size_t kMaxShownLine = 200;

/// The line, which has no line break, and under it a caret at `column`, from 1, with tildes up to
/// `length` bytes or the line's end. What a terminal would obey becomes blanks. Empty if the column
/// is beyond the part that is shown.
std::string snippet(std::string_view line, uint32_t column, size_t length);

} // namespace occl::diagnostics
