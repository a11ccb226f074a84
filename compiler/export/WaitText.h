// Why an instruction waits, in words.
#pragma once

#include "compiler/cost/Predict.h"

#include <string>

namespace occl::exporter {

/// "rank 3's message (thread block 0, instruction 7, ring.coll:9:11)", after "waits for"; `cause`
/// is an instruction of the plan where the wait has one.
std::string waitText(const plan::Plan &plan, cost::Wait wait, uint32_t cause);

} // namespace occl::exporter
