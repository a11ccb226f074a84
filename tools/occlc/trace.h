// `occlc trace`, and `occlc compile --emit=trace`.
#pragma once

#include "tools/occlc/prediction.h"

namespace occl::tools {

struct TraceCommand {
  std::string path; // of a plan
  std::string output = "-";
  PredictionOptions prediction;
};

CLI::App *addTrace(CLI::App &app, TraceCommand &command);

/// Writes the predicted schedule of a plan file, which is verified first. The exit status.
int trace(const TraceCommand &command);

/// Writes the predicted schedule of a plan on the topology, shared memory if that is null, to a
/// file, or to standard output if that is "-". The exit status.
int writeTrace(const plan::Plan &plan, const topology::Topology *topology,
               const PredictionOptions &options, const std::string &output);

} // namespace occl::tools
