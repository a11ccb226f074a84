// Which passes turn chunks into a scheduled program, in which order.
#pragma once

#include "compiler/driver/PipelineOptions.h"

#include "mlir/IR/BuiltinOps.h"

#include <string>

namespace occl::driver {

/// Makes `occl-default`, the pipeline of all passes, known to MLIR, which then parses it with the
/// options of PipelineOptions.def. Thread-safe; only the first call does something.
///   chunks        chunk-parallelize, chunk-mark-final
///   instructions  lower-chunks, inst-propagate-copies, inst-merge-multicast, inst-fuse,
///                 inst-aggregate
///   schedule      inst-assign-thread-blocks, inst-schedule, inst-synchronize,
///                 inst-use-direct-access
void registerPipeline();

/// "builtin.module(occl-default{max-thread-blocks=2})", as `occl-opt --pass-pipeline` takes it.
std::string pipelineText(const PipelineOptions &options);

/// Parses pipelineText(options) and runs it on a module of one chunk.program, which is an
/// inst.program afterwards. Errors are emitted as MLIR diagnostics.
mlir::LogicalResult runPipeline(mlir::ModuleOp module, const PipelineOptions &options);

} // namespace occl::driver
