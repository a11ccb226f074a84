// A hash of what a plan does, by which ranks make sure that they run the same one.
#pragma once

#include "plan/model/plan.h"

namespace occl::plan {

/// 64 bits over everything that the execution depends on: all fields but source files and
/// locations, which may be spelled differently on each machine. The same on every machine and in
/// every build of one schema version. Not cryptographic: it finds mistakes, not attacks.
uint64_t hashPlan(const Plan &plan);

} // namespace occl::plan
