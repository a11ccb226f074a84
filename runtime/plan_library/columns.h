// A plan as columns of numbers: one field of all instructions, then the next field, ... Written
// when the library is built and read by the same version, so it says nothing about itself. Reading
// one is a loop a field; plans of files are CBOR (plan/io).
#pragma once

#include "plan/model/plan.h"

#include <optional>
#include <string>
#include <string_view>

namespace occl::plan_library {

/// All of it but its witnesses, which only the verifier needs.
std::string toColumns(const plan::Plan &plan);

/// Nothing if the bytes are too few or too many. They are believed otherwise: whoever calls has
/// compared a checksum.
std::optional<plan::Plan> fromColumns(std::string_view bytes);

} // namespace occl::plan_library
