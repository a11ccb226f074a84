// Times, sizes and speeds for people.
#pragma once

#include "compiler/cost/StepCosts.h"

#include <string>

namespace occl::cost {

/// "850 ns", "12.34 us", "5.00 ms", "1.20 s".
std::string timeText(Picoseconds time);

/// "64 B", "4 KiB", "1.5 MiB": with a fraction only where it is needed.
std::string bytesText(uint64_t bytes);

/// "360 GB/s", "48.5 GB/s", of 10^9 bytes.
std::string bandwidthText(BytesPerSecond bandwidth);

} // namespace occl::cost
