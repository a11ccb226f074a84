#include "compiler/driver/Pipeline.h"

#include "compiler/passes/Passes.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/Timing.h"

using namespace mlir;

namespace occl::driver {

namespace {

void addChunkPasses(OpPassManager &passes, const PipelineOptions &options) {
  passes.addPass(passes::createChunkParallelize({options.instances}));
  passes.addPass(passes::createChunkMarkFinal());
}

void addInstructionPasses(OpPassManager &passes, const PipelineOptions &options) {
  passes.addPass(passes::createLowerChunks());
  if (options.multicast)
    passes.addPass(passes::createInstMergeMulticast());
  if (options.fuse)
    passes.addPass(passes::createInstFuse());
  if (options.aggregate)
    passes.addPass(passes::createInstAggregate());
}

void addSchedulePasses(OpPassManager &passes, const PipelineOptions &options) {
  passes.addPass(passes::createInstAssignThreadBlocks({options.maxThreadBlocks}));
  passes.addPass(passes::createInstSchedule({options.maxDepth}));
  passes.addPass(passes::createInstSynchronize());
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
    // Once a phase is enough: verifying takes longer than most passes.
    passes.enableVerifier(false);
    passes.enableTiming(scope);
    phase.addPasses(passes, options);
    if (failed(passes.run(module)))
      return failure();
    TimingScope verifying = scope.nest("verify");
    if (failed(verify(module)))
      return failure();
  }
  return success();
}

} // namespace occl::driver
