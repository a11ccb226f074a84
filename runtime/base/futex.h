// Sleeping on a 32-bit word that may lie in memory shared by processes. Thread safety: any.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace occl {

/// Sleeps while `word` holds `expected`, at most `atMost`. May wake without cause: check the
/// condition again.
void futexWait(std::atomic<uint32_t> &word, uint32_t expected, std::chrono::nanoseconds atMost);

/// Wakes all threads of all processes that sleep on `word`.
void futexWakeAll(std::atomic<uint32_t> &word);

} // namespace occl
