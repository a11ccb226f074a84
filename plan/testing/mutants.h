// Changes plans as mistakes of a compiler would.
#pragma once

#include "plan/model/plan.h"

#include <random>
#include <string>

namespace occl::plan::testing {

/// Drops, exchanges, retargets or resizes something, or moves a message to another channel, in
/// `plan`, of good shape and with at least one instruction. Says what it did. The result may be of
/// bad shape, and may be right.
std::string mutate(Plan &plan, std::mt19937 &random);

} // namespace occl::plan::testing
