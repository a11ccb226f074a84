// Gives a plan the promise of another one: how a plan of another tool, of which nobody said what it
// computes, comes to be proved against a collective that is written down somewhere else.
#pragma once

#include "plan/model/plan.h"
#include "support/status.h"

namespace occl::plan {

/// Makes `plan` promise what `model` promises: collective, root, requirements, in-place offsets,
/// and no more alias modes than both are meant for. `plan` may cut a part into a multiple of the
/// model's chunks; it is then for uniform chunks if the promise does not speak of whole parts. An
/// error, and `plan` untouched, if ranks or buffers differ or the model promises nothing. Expects
/// flat arrays in range (of a verified plan, or from the builder); the result is to be verified.
support::Status adoptPostcondition(Plan &plan, const Plan &model);

} // namespace occl::plan
