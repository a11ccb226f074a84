// Plans that may be executed: read from a file, verified, immutable, shared.
#pragma once

#include "plan/model/plan.h"
#include "runtime/base/status.h"

#include <cstdint>
#include <memory>
#include <string>

namespace occl::loader {

/// A plan that verifyPlan has accepted.
struct LoadedPlan {
  plan::Plan plan;
  /// Of what it does, equal on all ranks that loaded the same plan (plan/model/hash.h).
  uint64_t hash = 0;
};

using LoadedPlanPtr = std::shared_ptr<const LoadedPlan>;

/// Reads and verifies the plan in a regular file, JSON or CBOR. A file that has not changed since
/// it was loaded, and whose plan is still in use, is not read again: ranks that are threads of a
/// process share one plan. SystemError if the file cannot be read; InvalidPlan, with the place and
/// the witness, if it is not a correct plan. Any thread.
StatusOr<LoadedPlanPtr> loadPlan(const std::string &path);

/// Verifies a plan that is not in a file. `origin` stands in front of errors. Any thread.
StatusOr<LoadedPlanPtr> adoptPlan(plan::Plan plan, const std::string &origin);

} // namespace occl::loader
