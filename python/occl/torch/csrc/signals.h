// Signals for Python while a thread waits inside of the extension.
#pragma once

#include <chrono>

namespace occl_torch {

/// For how long a wait may go on without looking after signals.
constexpr auto kSignalSlice = std::chrono::milliseconds(50);

/// Runs Python's signal handlers: SIGINT's raises KeyboardInterrupt. Takes the interpreter's lock,
/// and any program may be what they run: so not with a mutex of one's own.
void checkSignals();

} // namespace occl_torch
