// The limits of a plan. One place: the compiler refuses to emit more, the reader and verifier
// refuse to accept more, `occlc limits` prints them. They bound memory before anything is allocated
// from an untrusted file.
#pragma once

#include <cstdint>

namespace occl::plan {

namespace limits {
#define OCCL_PLAN_LIMIT(Name, name, type, value, text) inline constexpr type kMax##Name = value;
#include "plan/model/limits.def"
#undef OCCL_PLAN_LIMIT
} // namespace limits

/// The same as numbers of one object: tests lower them, as plans at some limits have gigabytes.
struct Limits {
#define OCCL_PLAN_LIMIT(Name, name, type, value, text) uint64_t name = value;
#include "plan/model/limits.def"
#undef OCCL_PLAN_LIMIT
};

/// Where a limit is in Limits, and what it limits.
struct LimitInfo {
  uint64_t Limits::*field;
  const char *text;
};

inline constexpr LimitInfo kLimits[] = {
#define OCCL_PLAN_LIMIT(Name, name, type, value, text) {&Limits::name, text},
#include "plan/model/limits.def"
#undef OCCL_PLAN_LIMIT
};

} // namespace occl::plan
