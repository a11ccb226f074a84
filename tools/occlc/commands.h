// What the subcommands of occlc do. Each returns the exit status: 0, or 1 after an error in the
// input, which it has printed to standard error.
#pragma once

#include "compiler/driver/Autotuner.h"
#include "compiler/driver/Compiler.h"
#include "tools/occlc/prediction.h"

#include <cstdint>
#include <optional>
#include <string>

namespace occl::tools {

enum class Emit : uint8_t { Chunk, Pipeline, Inst, Plan, Dot, Trace, MscclXml };

struct CompileCommand {
  driver::CompileOptions options;
  driver::AutotuneOptions autotune; // for the sizes of `prediction`
  std::string output = "-";         // -: standard output
  Emit emit = Emit::Plan;
  bool stats = false;
  /// Of --stats and --emit=trace; the first size also says which version of the algorithm.
  PredictionOptions prediction;
};

/// "ring.plan.json" as "ring.0-65535.plan.json" or "ring.65536-max.plan.json".
std::string versionPath(const std::string &path, const frontend::VersionInfo &version);

/// Compiles and writes what `emit` says. A plan goes to a file only after it has been verified.
/// All versions of the algorithm, each to a file of its own, unless the options choose one.
int compile(const CompileCommand &command);

/// Compiles and prints what was proved, in each alias mode; writes nothing. Of `command` the
/// options for compiling count.
int check(const CompileCommand &command);

/// Reads a plan file and verifies it.
int verify(const std::string &path);

/// Prints what a plan may use at most.
int printLimits();

} // namespace occl::tools
