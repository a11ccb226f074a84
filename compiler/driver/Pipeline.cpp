#include "compiler/driver/Pipeline.h"

#include "compiler/analysis/ProgramIO.h"
#include "compiler/dialect/chunk/ChunkProgram.h"
#include "compiler/passes/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/Timing.h"

using namespace mlir;

namespace occl::driver {

namespace {

void addChunkPasses(OpPassManager &passes, const PipelineOptions &options) {
  passes.addPass(passes::createChunkParallelize({options.instances, options.shareChannels}));
  passes.addPass(passes::createChunkMarkFinal());
}

void addInstructionPasses(OpPassManager &passes, const PipelineOptions &options) {
  passes.addPass(passes::createLowerChunks());
  if (options.fuse)
    passes.addPass(passes::createInstPropagateCopies());
  if (options.multicast)
    passes.addPass(passes::createInstMergeMulticast());
  if (options.fuse)
    passes.addPass(
        passes::createInstFuse({options.reassociate, options.foldArrivals, options.maxFanOut}));
  if (options.aggregate)
    passes.addPass(passes::createInstAggregate({options.joinsLocal()}));
}

void addSchedulePasses(OpPassManager &passes, const PipelineOptions &options) {
  std::vector<uint32_t> weights;
  if (options.weights)
    weights = options.weights->numbers();
  passes.addPass(passes::createInstAssignThreadBlocks({options.maxThreadBlocks, options.maxChannels,
                                                       options.colors, options.layout,
                                                       options.spreadsLocal(), weights}));
  passes.addPass(passes::createInstSchedule({options.maxDepth, weights}));
  passes.addPass(passes::createInstSynchronize());
  if (options.directGroupSize != 0 || !options.directGroups.empty())
    passes.addPass(passes::createInstUseDirectAccess(
        {options.directGroupSize, options.directGroups, options.reassociate}));
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
  // To verify IR takes longer than most passes, to write and read it as long as all of them.
  if (options.verifyEach)
    chunk::writeKeptChunks(*module.getContext());
  else
    analysis::keepPrograms(*module.getContext());
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
