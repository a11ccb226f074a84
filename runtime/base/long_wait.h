// Waits without a deadline go on; those that last for long are said on standard error, each once.
#pragma once

#include <chrono>
#include <string>

namespace occl {

/// 30 seconds, or as many milliseconds as OCCL_LONG_WAIT_MS of the environment has, if more than 0.
std::chrono::milliseconds longWait();
/// "30000 ms".
std::string describeLongWait();
/// A line "occl: <text>" on standard error. Any thread.
void reportLongWait(const std::string &text);

} // namespace occl
