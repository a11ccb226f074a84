// Stable codes of what is wrong with files that are no plans: E350 to E359. The messages of
// plan/io/reader.h end in them, in brackets.
#pragma once

#include <cstdint>
#include <string>

namespace occl::plan {

enum class ReadCode : uint16_t {
#define OCCL_READ_CODE(name, number, text) name = number,
#include "plan/io/read_code.def"
#undef OCCL_READ_CODE
};

struct ReadCodeInfo {
  ReadCode code;
  const char *text; // the kind of mistake, in words
};

/// All codes, ascending.
inline constexpr ReadCodeInfo kReadCodes[] = {
#define OCCL_READ_CODE(name, number, text) {ReadCode::name, text},
#include "plan/io/read_code.def"
#undef OCCL_READ_CODE
};

/// "E352".
inline std::string nameOf(ReadCode code) {
  return "E" + std::to_string(static_cast<unsigned>(code));
}

} // namespace occl::plan
