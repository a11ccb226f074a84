// What the subcommands of occlc do. Each returns the exit status: 0, or 1 after an error in the
// input, which it has printed to standard error.
#pragma once

#include "compiler/driver/Compiler.h"

#include <cstdint>
#include <optional>
#include <string>

namespace occl::tools {

enum class Emit : uint8_t { Chunk, Inst, Plan, Dot };

struct CompileCommand {
  driver::CompileOptions options;
  std::string output = "-"; // -: standard output
  Emit emit = Emit::Plan;
  bool stats = false;
};

/// "ring.plan.json" as "ring.0-65535.plan.json" or "ring.65536-max.plan.json".
std::string versionPath(const std::string &path, const frontend::VersionInfo &version);

/// Compiles and writes what `emit` says. A plan goes to a file only after it has been verified.
/// All versions of the algorithm, each to a file of its own, unless the options choose one.
int compile(const CompileCommand &command);

/// Compiles and prints what was proved, in each alias mode; writes nothing.
int check(const driver::CompileOptions &options);

/// Reads a plan file and verifies it.
int verify(const std::string &path);

/// Prints a verified plan for people: its head, and the instructions of one rank or of all.
int explain(const std::string &path, std::optional<uint32_t> rank);

/// Prints what a plan may use at most.
int printLimits();

} // namespace occl::tools
