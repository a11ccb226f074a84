// Whole numbers on command lines.
#pragma once

#include <CLI/CLI.hpp>

#include <charconv>
#include <cstdint>
#include <limits>
#include <string>
#include <system_error>

namespace occl::tools {

/// Whether all of the text is decimal digits of a number from `low` to `high`, which `out` gets
/// then.
template <typename Number>
bool parseNumber(const std::string &text, Number low, Number high, Number &out) {
  Number number = 0;
  const char *begin = text.data(), *end = begin + text.size();
  const auto [stop, error] = std::from_chars(begin, end, number);
  if (error != std::errc() || stop != end || number < low || number > high)
    return false;
  out = number;
  return true;
}

/// For the `transform` of an option. CLI11 alone takes -1 and what is too large for 2^64 - 1, and
/// 010 for 8.
inline CLI::Validator wholeNumber() {
  const auto read = [](std::string &text) {
    constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
    uint64_t number = 0;
    if (!parseNumber(text, uint64_t{0}, kMost, number))
      return "'" + text + "' is no whole number from 0 to " + std::to_string(kMost);
    text = std::to_string(number);
    return std::string();
  };
  return {read, ""};
}

} // namespace occl::tools
