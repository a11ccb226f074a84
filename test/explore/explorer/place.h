// Places in the program, for people.
#pragma once

#include <cstdint>
#include <string>

namespace occl::explore {

/// File and line of the call that returns to `place`, and where that is inlined; else its offset in
/// the program.
std::string describePlace(uintptr_t place);

} // namespace occl::explore
