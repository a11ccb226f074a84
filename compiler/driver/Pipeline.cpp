#include "compiler/driver/Pipeline.h"

#include "compiler/passes/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/Timing.h"

using namespace mlir;

namespace occl::driver {

namespace {

void addChunkPasses(OpPassManager &passes, const PipelineOptions &options) {
  passes.addPass(passes::createChunkParallelize(
      {.instances = options.instances, .shareChannels = options.shareChannels}));
  passes.addPass(passes::createChunkMarkFinal());
}

void addInstructionPasses(OpPassManager &passes, const PipelineOptions &options) {
  passes.addPass(passes::createLowerChunks());
  if (options.fuse)
    passes.addPass(passes::createInstPropagateCopies());
  if (options.multicast)
    passes.addPass(passes::createInstMergeMulticast());
  if (options.fuse)
    passes.addPass(passes::createInstFuse({.reassociate = options.reassociate,
                                           .foldArrivals = options.foldArrivals,
                                           .maxFanOut = options.maxFanOut}));
  if (options.aggregate)
    passes.addPass(passes::createInstAggregate({.local = options.joinsLocal()}));
}

void addSchedulePasses(OpPassManager &passes, const PipelineOptions &options) {
  std::vector<uint32_t> weights;
  if (options.weights)
    weights = options.weights->numbers();
  passes.addPass(passes::createInstAssignThreadBlocks({.maxThreadBlocks = options.maxThreadBlocks,
                                                       .maxChannels = options.maxChannels,
                                                       .colors = options.colors,
                                                       .layout = options.layout,
                                                       .spreadLocal = options.spreadsLocal(),
                                                       .weights = weights}));
  passes.addPass(passes::createInstSchedule({.maxDepth = options.maxDepth, .weights = weights}));
  passes.addPass(passes::createInstSynchronize());
  if (options.directGroupSize != 0 || !options.directGroups.empty())
    passes.addPass(passes::createInstUseDirectAccess({.groupSize = options.directGroupSize,
                                                      .groups = options.directGroups,
                                                      .reassociate = options.reassociate}));
}

struct Phase {
  const char *name;
  void (*addPasses)(OpPassManager &, const PipelineOptions &);
};

constexpr Phase kPhases[] = {
    {"chunks", addChunkPasses},
    {"instructions", addInstructionPasses},
    {"schedule", addSchedulePasses},
};

} // namespace

LogicalResult runPipeline(ModuleOp module, const PipelineOptions &options) {
  DefaultTimingManager timing;
  timing.setEnabled(options.printTiming);
  timing.setDisplayMode(DefaultTimingManager::DisplayMode::Tree);
  TimingScope root = timing.getRootScope();
  for (const Phase &phase : kPhases) {
    TimingScope scope = root.nest(phase.name);
    PassManager passes(module.getContext(), ModuleOp::getOperationName());
    passes.enableVerifier(options.verifyEach);
    passes.enableTiming(scope);
    phase.addPasses(passes, options);
    if (failed(passes.run(module)))
      return failure();
  }
  return success();
}

} // namespace occl::driver
