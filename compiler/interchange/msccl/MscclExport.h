// From a plan to MSCCL XML.
#pragma once

#include "compiler/interchange/msccl/MscclXml.h"
#include "plan/model/plan.h"
#include "support/status.h"

#include <iosfwd>
#include <string>
#include <vector>

namespace occl::interchange::msccl {

/// The names of collectives differ between the runtimes that read the format.
enum class Runtime : uint8_t { Msccl, Rccl };

/// The content of an XML file that does what `plan` does; an error if the format cannot say it.
/// What the format has no word for is taken apart: multicasts, reductions of many, thread blocks
/// with several peers or channels. Expects a verified plan.
support::Expected<Algorithm> exportAlgorithm(const plan::Plan &plan, Runtime runtime);

/// Writes an algorithm as XML, an element a line.
void writeAlgorithm(const Algorithm &algorithm, std::ostream &out);

/// What the known runtimes would refuse in the algorithm; a line each.
std::vector<std::string> beyondRuntimes(const Algorithm &algorithm);

} // namespace occl::interchange::msccl
