// Options that the cost model chooses: protocol, number of instances, and how work is scheduled.
#pragma once

#include "compiler/driver/Compiler.h"
#include "compiler/driver/ScheduleOptions.h"

namespace occl::driver {

struct AutotuneOptions {
  bool protocol = false;
  bool instances = false;
  Tuning tuning = Tuning::Auto;
  /// Bytes of a part to choose for; none: some from the range that the plan is meant for.
  std::vector<uint64_t> bytes;
};

/// A way to compile that was tried.
struct Candidate {
  std::string protocol;
  /// Leaves out the direct accesses that the options allow.
  bool onlyMessages = false;
  uint32_t instances = 1;
  ScheduleOptions schedule;
  /// What the schedule options are where nobody says.
  ScheduleOptions usual;
  /// By size, in the order of AutotuneResult::bytes; empty if it gives no valid plan.
  std::vector<topology::Picoseconds> makespans;
  /// One of them follows from the first tiles.
  bool isCutShort = false;
};

struct AutotuneResult {
  std::vector<uint64_t> bytes;
  std::vector<Candidate> candidates;
  size_t chosen = 0;

  /// "protocol ll, 4 instances", and a line for each candidate.
  std::string text() const;
};

/// Whether there is anything to choose for these options.
bool isAutotuningAsked(const CompileOptions &options, const AutotuneOptions &asked);

/// Compiles with every protocol that is to be chosen among, where direct accesses are allowed with
/// and without these, with 1, 2, 4, ... instances and as many as the budget of thread blocks, and
/// with other schedule options, one changed at a time, as long as that
/// helps. Sets `options` to those with the least predicted makespan on its topology, shared memory
/// without one (GPUs at a switch if only the local instructions of direct accesses are chosen):
/// over several sizes, the least geometric mean; of those within half a percent of it
/// the one with the fewest instances and unusual options. Compiling with the options set gives the
/// same plan as asking for them. nullopt, after printing errors, if the options as they are give no
/// plan.
std::optional<AutotuneResult> autotune(CompileOptions &options, const AutotuneOptions &asked);

} // namespace occl::driver
