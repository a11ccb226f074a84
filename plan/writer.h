// Writes plans as JSON (an instruction a line, for people) or CBOR (RFC 8949, the same schema, for
// size and speed), as a stream: memory does not grow with the plan. The same plan gives the same
// bytes. Control characters in names, and what is not UTF-8, become '?'. docs/plan.md describes the
// schema.
#pragma once

#include "plan/plan.h"
#include "plan/status.h"

#include <iosfwd>
#include <string>

namespace occl::plan {

enum class Format : uint8_t { Json, Cbor };

/// Writes `plan` to `out`, which should be in binary mode. The plan's indices must be in range
/// (verifyPlan, or PlanBuilder). An error if the stream fails.
Status writePlan(const Plan &plan, Format format, std::ostream &out);

/// Writes a file, replacing it; as CBOR if `path` ends in ".cbor", else as JSON. After an error the
/// file is removed.
Status writePlanFile(const Plan &plan, const std::string &path);

/// The bytes of `plan`.
std::string encodePlan(const Plan &plan, Format format);

} // namespace occl::plan
