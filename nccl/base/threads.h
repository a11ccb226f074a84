// Threads that work in the background of a program that does not know of them.
#pragma once

#include "support/process/signals_blocked.h"

#include <thread>
#include <utility>

namespace occl::nccl {

/// Runs body() on a thread of its own, never joined. It, and the threads that it starts, take no
/// signals but those of their own faults, as threads of OCCL: others are for the threads that the
/// program has chosen. std::system_error if there can be no thread.
template <class Body> void startThread(Body body) {
  const SignalsBlocked whileItStarts;
  std::thread(std::move(body)).detach();
}

} // namespace occl::nccl
