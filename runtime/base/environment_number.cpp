#include "runtime/base/environment_number.h"

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <system_error>

namespace occl {

uint64_t environmentNumber(const char *name, uint64_t least, uint64_t most, uint64_t usual) {
  const char *text = std::getenv(name);
  if (!text || !*text)
    return usual;
  uint64_t number = 0;
  const char *end = text + std::strlen(text);
  const auto [rest, error] = std::from_chars(text, end, number);
  if (error == std::errc() && rest == end && number >= least && number <= most)
    return number;
  // A number that is too large means as much as there is.
  const bool isTooLarge = rest == end && (error == std::errc::result_out_of_range || number > most);
  const uint64_t taken = isTooLarge ? most : usual;
  std::fprintf(
      stderr, "occl: environment variable %s is '%s', expected %llu to %llu; it is taken as %llu\n",
      name, text, static_cast<unsigned long long>(least), static_cast<unsigned long long>(most),
      static_cast<unsigned long long>(taken));
  return taken;
}

} // namespace occl
