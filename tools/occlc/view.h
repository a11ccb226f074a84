// `occlc view`: a plan or a trace as a page to look at.
#pragma once

#include "tools/occlc/prediction.h"

#include <string>

namespace occl::tools {

struct ViewCommand {
  std::string path;   // a plan or a trace
  std::string trace;  // recorded runs of the plan, or none
  std::string output; // "": beside the file, with .html for .json or .cbor
  PredictionOptions prediction;
};

CLI::App *addView(CLI::App &app, ViewCommand &command);
/// The exit status.
int view(const ViewCommand &command);

} // namespace occl::tools
