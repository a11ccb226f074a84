// Stable codes of what verifyPlan finds wrong with a plan: E300 to E349.
#pragma once

#include <cstdint>
#include <string>

namespace occl::plan {

enum class Proof : uint8_t { Shape, Matching, Deadlock, Race, Postcondition, Lifetime };

enum class Code : uint16_t {
#define OCCL_PLAN_CODE(name, number, text, proof) name = number,
#include "plan/verify/code.def"
#undef OCCL_PLAN_CODE
};

struct CodeInfo {
  Code code;
  Proof proof;      // which finds it
  const char *text; // the kind of mistake, in words
};

/// All codes, ascending.
inline constexpr CodeInfo kCodes[] = {
#define OCCL_PLAN_CODE(name, number, text, proof) {Code::name, Proof::proof, text},
#include "plan/verify/code.def"
#undef OCCL_PLAN_CODE
};

constexpr Proof proofOf(Code code) {
  for (const CodeInfo &info : kCodes)
    if (info.code == code)
      return info.proof;
  return Proof::Shape;
}

/// "E330".
inline std::string nameOf(Code code) { return "E" + std::to_string(static_cast<unsigned>(code)); }

} // namespace occl::plan
