// How the ranks of a process group find each other: through its store.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/Store.hpp>

namespace occl_torch {

/// What Communicator::join needs, for each of the communicators of a process group.
struct Meeting {
  std::string collectives, messages;
  std::string devices; // "" across machines
  /// Whether ranks are on several machines, or on one without shared memory between them.
  bool isAcross = false;
  /// On rank 0: ports, until all have joined.
  std::vector<std::shared_ptr<void>> held;
};

/// Waits for all ranks, at most `timeout`. Throws DistBackendError, on all ranks, which names those
/// that have not come.
Meeting meet(c10d::Store &store, int rank, int size, std::chrono::milliseconds timeout);

/// Of ranks that have a communicator for collectives already: `tell` brings rank 0's text to all of
/// them. Nothing is asked of the store, whose process may be gone. Throws DistBackendError.
Meeting meetAgain(c10d::Store &store, int rank, int size, bool isAcross,
                  const std::function<void(std::string &)> &tell);

} // namespace occl_torch
