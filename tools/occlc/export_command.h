// occlc export: plans as files of other tools.
#pragma once

#include "compiler/interchange/msccl/MscclExport.h"
#include "plan/model/plan.h"

#include <CLI/CLI.hpp>

#include <string>

namespace occl::tools {

struct ExportCommand {
  std::string path;
  std::string output = "-";
  interchange::msccl::Runtime runtime = interchange::msccl::Runtime::Msccl;
};

/// Adds the subcommand to `app`, filling `command` when it is parsed.
CLI::App *addExport(CLI::App &app, ExportCommand &command);

/// Reads a plan and exports it. Returns the exit status, as below.
int exportPlan(const ExportCommand &command);

/// Writes a verified plan as MSCCL XML, after reading the text back and proving it; prints what
/// runtimes would refuse as warnings. Returns the exit status: 1 after an error, which it has
/// printed.
int writeMscclXml(const plan::Plan &plan, const std::string &path,
                  interchange::msccl::Runtime runtime);

} // namespace occl::tools
