// Plans that were written before.
#pragma once

#include "plan/model/plan.h"
#include "plan/verify/verifier.h"

#include <optional>
#include <string>

namespace occl::tools {

/// A plan from a file, proved; nothing after an error, which was printed to standard error.
std::optional<plan::Plan> readVerified(const std::string &path, plan::VerifyResult &result);

} // namespace occl::tools
