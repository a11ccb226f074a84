// The options of `occlc compile` and `occlc check`: where the source is, and what the plan is to
// be.
#pragma once

#include "compiler/driver/Autotuner.h"
#include "compiler/driver/Compiler.h"

#include <CLI/CLI.hpp>

namespace occl::tools {

/// Both live as long as `app`, which writes to them.
void addSourceOptions(CLI::App &app, driver::CompileOptions &options);
void addPlanOptions(CLI::App &app, driver::CompileOptions &options, driver::AutotuneOptions &asked);

} // namespace occl::tools
