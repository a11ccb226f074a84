// Traces as a schedule: those that `occlc trace` predicts and those that the runtime records.
#pragma once

#include "compiler/view/Schedule.h"
#include "support/status.h"

#include <string_view>

namespace occl::view {

/// `trace` is a JSON object in the Trace Event Format with the names of plan/model/trace_names.h:
/// each end of a message stands behind the event that it belongs to. Messages of which one end is
/// missing (a ring of the runtime was too small) are left out. `origin` stands in front of errors.
support::Expected<Schedule> readTrace(std::string_view trace, const std::string &origin);

/// Keeps of a recorded trace the invocations of the plan whose predicted run is `predicted`, found
/// by what its instructions do; lanes are those of `predicted`, and each invocation begins at 0. An
/// error if there is none.
support::Status keepRunsOf(const Schedule &predicted, Schedule &recorded,
                           const std::string &origin);

} // namespace occl::view
