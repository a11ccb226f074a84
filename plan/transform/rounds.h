// A plan that does what another one does, side by side on pieces of the data: what waits for the
// data of one piece does not hold up the others.
#pragma once

#include "plan/model/plan.h"
#include "support/status.h"

#include <cstdint>

namespace occl::plan {

/// `plan` in so many rounds. Every part of a buffer is cut into `rounds` pieces, one behind the
/// other; round i does with the i-th piece of every part what `plan` does with the part, by thread
/// blocks, connections and scratch of its own. Its thread blocks are those from i * b on of each
/// rank, where `plan` has b. So rounds wait for nothing of each other. Of several rounds it is
/// valid for the alias modes of `plan`, and proved like any other plan (verifyPlan).
///
/// An error, from two rounds on, if an instruction has chunks of several parts, if chunks may end
/// in places of another size (uniformChunks), if a buffer is not a whole number of parts, if ranks
/// access each other's buffers, or if there would be more of anything than a plan may have.
/// `plan` is a verified one.
support::Expected<Plan> inRounds(const Plan &plan, uint32_t rounds);

} // namespace occl::plan
