// Threads that work in the background of a program that does not know of them.
#pragma once

#include "runtime/sync/thread.h"
#include "support/process/signals_blocked.h"

#include <utility>

namespace occl {

/// Signals are for the threads that the program has made for them. Not for threads that call back:
/// what these start, processes too, would have them blocked. std::system_error if there can be no
/// thread.
template <class Body> Thread startInBackground(Body body) {
  const SignalsBlocked whileItStarts;
  return Thread(std::move(body));
}

} // namespace occl
