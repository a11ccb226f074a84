// Numbers that nobody has drawn before.
#pragma once

#include <cstdint>

namespace occl {

/// A random number, not 0. Never fails and needs no file descriptor: where the system gives no
/// random numbers, one made of the time and the thread. Any thread.
uint64_t drawNonce();

} // namespace occl
