// Random traffic over a connection, checked.
#pragma once

#include "runtime/net/transport/testing/side.h"

#include <chrono>
#include <cstdint>
#include <string>

namespace occl::net {

/// In both directions, by a thread for each side: puts of many sizes, of which each is checked when
/// its word is there. Expects that all of it is right within `patience`. Prints its seed.
void converse(Side &a, Side &b, uint64_t numPuts,
              std::chrono::seconds patience = std::chrono::seconds(100));

} // namespace occl::net
