// Trials that mostly wait, several at a time.
#pragma once

#include <cstdint>
#include <functional>

namespace occl::faults {

/// Runs body(0) to body(number - 1), each in a process of its own, and returns when all have ended.
/// The calling test fails if one of them does. To be called before the test has started threads.
void runAtOnce(uint32_t number, const std::function<void(uint32_t)> &body);

} // namespace occl::faults
