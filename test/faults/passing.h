// What the hooks tell about the points that a process passes; see fault_points.h.
#pragma once

#include "runtime/sync/explored.h"

#include <cstddef>
#include <cstdint>

namespace occl::faults {

void passCall(const char *name);
void passAccess(const char *operation, const void *address, const explored::Where &where);
/// After passAccess of a store: stores something else if that is the fault.
bool corrupt(void *address, uint64_t value, size_t bytes);

} // namespace occl::faults
