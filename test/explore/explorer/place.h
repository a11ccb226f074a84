// Places in the program.
#pragma once

#include <cstdint>
#include <string>

namespace occl::explore {

/// A call that returns there, in four bytes.
uint32_t placeOf(const void *returnAddress);

/// Its file and line, and where that is inlined; else its offset in the program.
std::string describePlace(uint32_t place);

} // namespace occl::explore
