// occlc import: plans from the files of other tools.
#pragma once

#include "compiler/interchange/common/ImportedPostcondition.h"

#include <CLI/CLI.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace occl::tools {

struct ImportCommand {
  std::string path;
  std::string output = "-";
  std::optional<uint32_t> depth, root;
  interchange::PostconditionRequest implements; // collective is empty: what the file names
};

/// Adds the subcommand to `app`, filling `command` when it is parsed.
CLI::App *addImport(CLI::App &app, ImportCommand &command);

/// Reads, verifies and writes. Returns the exit status: 1 after an error, which it has printed.
int importPlan(const ImportCommand &command);

} // namespace occl::tools
