#include "runtime/base/environment_number.h"

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <system_error>

namespace occl {

std::optional<uint64_t> numberFrom(std::string_view text, uint64_t least, uint64_t most) {
  uint64_t number = 0;
  const char *end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  const bool isNumber = error == std::errc() && rest == end && number >= least && number <= most;
  return isNumber ? std::optional(number) : std::nullopt;
}

uint64_t environmentNumber(const char *name, uint64_t least, uint64_t most, uint64_t usual) {
  const char *given = std::getenv(name);
  const std::string_view text = given ? given : "";
  if (text.empty())
    return usual;
  if (const auto number = numberFrom(text, least, most))
    return *number;
  // A number that is too large means as much as there is.
  const bool isNumber = text.find_first_not_of("0123456789") == std::string_view::npos;
  const uint64_t taken = isNumber && !numberFrom(text, 0, most) ? most : usual;
  std::fprintf(
      stderr, "occl: environment variable %s is '%s', expected %llu to %llu; it is taken as %llu\n",
      name, given, static_cast<unsigned long long>(least), static_cast<unsigned long long>(most),
      static_cast<unsigned long long>(taken));
  return taken;
}

} // namespace occl
