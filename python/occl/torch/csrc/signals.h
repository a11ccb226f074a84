// Signals for Python while a thread waits inside of the extension.
#pragma once

namespace occl_torch {

/// Runs Python's signal handlers: SIGINT's raises KeyboardInterrupt. Takes the interpreter's lock.
void checkSignals();

} // namespace occl_torch
