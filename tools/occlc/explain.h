// `occlc explain`.
#pragma once

#include "tools/occlc/prediction.h"

namespace occl::tools {

struct ExplainCommand {
  std::string path; // of a plan
  std::optional<uint32_t> rank, threadBlock;
  PredictionOptions prediction;
};

CLI::App *addExplain(CLI::App &app, ExplainCommand &command);

/// Prints a verified plan for people: its head, the instructions of one rank or of all, and why
/// they wait. The exit status.
int explain(const ExplainCommand &command);

} // namespace occl::tools
