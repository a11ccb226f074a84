// What a rank knows of a collective that resident daemons execute. Private to resident_rank.*.
#pragma once

#include "plan/aliasing.h"
#include "runtime/cuda/resident_rank.h"

#include <memory>
#include <string>

namespace occl::cuda {

struct ResidentRank::Known {
  Known(const daemon::CollectiveSpec &spec, uint32_t rank)
      : spec(spec), aliasing(*spec.plan, rank, spec.count, sizeOf(spec.type)) {}

  std::string describe() const {
    return "'" + (spec.name.empty() ? spec.plan->name : spec.name) + "' (id " +
           std::to_string(spec.id) + ")";
  }

  const daemon::CollectiveSpec spec;
  plan::Aliasing aliasing; // of this rank
  /// From the first submission on.
  Atomic<bool> isResident{false};
  std::unique_ptr<Registration> registration;
  bool isIdle() const { return registration->isIdle(); }
  uint32_t kernel = 0, number = 0; // the daemon, and the collective's number there
  ArenaSpace::Piece counts{};      // of the rank's arena

  // Under the rank's lock.
  uint64_t submitted = 0, completed = 0, failed = 0;
  uint64_t finishNs = 0, longestFinishNs = 0;
};

} // namespace occl::cuda
