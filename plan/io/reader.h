// Reads plans, JSON or CBOR, whichever the bytes are. Every limit of plan/model/limits.h is checked
// before memory is allocated for what it bounds; unknown, missing or repeated keys, wrong types,
// another schema version, cut-off files and trailing bytes are errors that name the place. A plan
// that was read is well shaped, not yet trusted: that takes verifyPlan (plan/verify/verifier.h).
#pragma once

#include "plan/model/limits.h"
#include "plan/model/plan.h"
#include "support/status.h"

#include <string>
#include <string_view>

namespace occl::plan {

/// The plan in `bytes`, within `limits`. `origin` stands in front of errors: a path, or what else
/// tells the user where it came from.
support::Expected<Plan> readPlan(std::string_view bytes, const std::string &origin = "plan",
                                 const Limits &limits = {});

/// The plan in a regular file, within `limits`.
support::Expected<Plan> readPlanFile(const std::string &path, const Limits &limits = {});

} // namespace occl::plan
