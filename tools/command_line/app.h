// What the command lines of all programs have in common: --version, and help that a terminal of 80
// columns shows as it is meant.
#pragma once

#include <CLI/CLI.hpp>

#include <string>

namespace occl::tools {

/// Of OCCL, as "0.1".
std::string version();

/// To be called with a new app that has its name, before it gets options and subcommands, which
/// take over how help is laid out. Descriptions and footers are broken into lines at blanks; lines
/// that fit stay as they are, so that tables and examples keep their columns.
void prepare(CLI::App &app);

} // namespace occl::tools
