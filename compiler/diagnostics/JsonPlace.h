// Where in the text of a JSON document a value stands.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace occl::diagnostics {

/// Bytes [begin, end).
struct JsonSpan {
  size_t begin = 0, end = 0;
};

/// Where `path`, such as "ranks[3].name", leads to: an element of an array, or a member of an
/// object with its key. The innermost value on its way if it leads nowhere; nothing if `text` does
/// not begin with an object. Believes that `text` is JSON up to there, and reads no more of it than
/// it needs; text that is not ends the search.
std::optional<JsonSpan> findInJson(std::string_view text, std::string_view path);

} // namespace occl::diagnostics
