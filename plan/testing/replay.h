// Checks what verifyPlan says of a plan by other means.
#pragma once

#include "plan/verify/verifier.h"

#include <random>
#include <string>

namespace occl::plan::testing {

/// Shows that the plan, which verifyPlan rejected with `error`, is wrong in that way: by an
/// execution that fails, or by two accesses that nothing orders. Returns why not, or nothing. What
/// is wrong with the shape of a plan is taken for granted, as that cannot be executed.
std::string replay(const Plan &plan, const VerifyError &error, std::mt19937 &random);

/// Shows that the plan, which verifyPlan accepted, has no race and is right in `rounds` random
/// orders of each alias mode. Returns why not, or nothing.
std::string confirm(const Plan &plan, uint32_t rounds, std::mt19937 &random);

} // namespace occl::plan::testing
