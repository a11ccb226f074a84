// Numbers that the environment may say.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace occl {

/// The number from `least` to `most` that all of the text is; nothing of any other text.
std::optional<uint64_t> numberFrom(std::string_view text, uint64_t least, uint64_t most);

/// The number from `least` to `most` that the environment variable `name` is, or `usual` if it is
/// not set. If it is anything else, as 5s or 1M, that is said on standard error, and `usual`, or of
/// a number that is too large `most`, counts.
uint64_t environmentNumber(const char *name, uint64_t least, uint64_t most, uint64_t usual);

} // namespace occl
