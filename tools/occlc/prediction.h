// What the commands that predict have in common, and `occlc stats`.
#pragma once

#include "compiler/topology/Topology.h"
#include "plan/model/plan.h"

#include <CLI/CLI.hpp>

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

namespace occl::tools {

struct PredictionOptions {
  /// Of a part; none: some from the range that the plan is meant for.
  std::vector<uint64_t> bytes;
  /// A file and its parameters; no file: shared memory.
  std::string topology;
  std::vector<std::string> defines;
};

void addBytesOption(CLI::App &app, PredictionOptions &options);
/// --bytes, --topology and -D.
void addPredictionOptions(CLI::App &app, PredictionOptions &options);

/// What a plan runs on; nothing after an error, which was printed to standard error.
std::optional<topology::Topology> topologyFor(const plan::Plan &plan,
                                              const PredictionOptions &options);

/// The first of the sizes, or 1 MiB, or what comes nearest to that in the plan's range.
uint64_t bytesFor(const plan::Plan &plan, const PredictionOptions &options);

/// Prints what the plan consists of and how it is predicted to run on the topology, shared memory
/// if that is null; false after an error, which was printed to standard error.
bool printStats(const plan::Plan &plan, const topology::Topology *topology,
                const PredictionOptions &options, std::ostream &out);

/// The same of a plan file, which is verified first, to standard output. The exit status.
int stats(const std::string &path, const PredictionOptions &options);

} // namespace occl::tools
