#include "compiler/interchange/common/SourceHash.h"

#include <cstdio>

namespace occl::interchange {

std::string hashOf(std::string_view text, uint32_t depth, uint32_t root,
                   std::string_view collective) {
  uint64_t hash = 0xcbf29ce484222325;
  auto add = [&](std::string_view bytes) {
    for (char c : bytes)
      hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    hash *= 0x100000001b3; // as after a zero byte: no two lists of texts are alike
  };
  add(text);
  add(std::to_string(depth));
  add(std::to_string(root));
  add(collective);
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(hash));
  return digits;
}

} // namespace occl::interchange
