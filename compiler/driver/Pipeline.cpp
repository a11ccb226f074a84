#include "compiler/driver/Pipeline.h"

#include "compiler/passes/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Support/Timing.h"

using namespace mlir;

namespace occl::driver {

namespace {

constexpr const char *kPipeline = "occl-default";

/// PipelineOptions as MLIR parses and describes them.
struct TextOptions : PassPipelineOptions<TextOptions> {
  using Number = Option<uint32_t>;
  using Word = Option<std::string>;
  using Numbers = ListOption<uint32_t>;
#define OCCL_PASS_SWITCH(member, name, usual, help)                                                \
  Option<bool> member{*this, name, llvm::cl::desc((usual) ? "false: " help : "true: " help),       \
                      llvm::cl::init(usual)};
#define OCCL_PLAN_SWITCH(member, name, usual, help)
#define OCCL_PASS_EITHER(member, name, effective, yes, no)                                         \
  Option<bool> member{*this, name, llvm::cl::desc("true: " yes "; false: " no)};
#define OCCL_PASS_NUMBER(member, name, usual, least, most, help)                                   \
  Number member{*this, name, llvm::cl::desc(help), llvm::cl::init(usual)};
#define OCCL_PASS_WORD(member, name, usual, words, help)                                           \
  Word member{*this, name, llvm::cl::desc(help), llvm::cl::init(usual)};
#define OCCL_PASS_LIST(member, name, help) Numbers member{*this, name, llvm::cl::desc(help)};
#include "compiler/driver/PipelineOptions.def"
  Numbers weights{*this, "weights", llvm::cl::desc("how long steps take, as inst-schedule has it")};
};

using Complain = llvm::function_ref<LogicalResult(const Twine &)>;

/// What is not given is as usual.
FailureOr<PipelineOptions> optionsOf(TextOptions &text, Complain complain) {
  // Fields that the text does not set keep what PipelineOptions has: one place for what is usual.
  // Ranges are those of the row.
  PipelineOptions options;
#define OCCL_PASS_SWITCH(member, name, usual, help)                                                \
  if (text.member.hasValue())                                                                      \
    options.member = text.member.getValue();
#define OCCL_PLAN_SWITCH(member, name, usual, help)
#define OCCL_PASS_EITHER(member, name, effective, yes, no) OCCL_PASS_SWITCH(member, name, , )
#define OCCL_PASS_NUMBER(member, name, usual, least, most, help)                                   \
  OCCL_PASS_SWITCH(member, name, , )                                                               \
  if (options.member != (usual) && (options.member < (least) || options.member > (most)))          \
    return complain(Twine(name) + " is " + Twine(options.member) + "; it can be " +                \
                    Twine(uint64_t{least}) + " to " + Twine(uint64_t{most}));
#define OCCL_PASS_WORD(member, name, usual, words, help) OCCL_PASS_SWITCH(member, name, , )
#define OCCL_PASS_LIST(member, name, help)                                                         \
  options.member.assign(text.member.begin(), text.member.end());
#include "compiler/driver/PipelineOptions.def"
  // Weights are a list without a type of its own; the number of elements is checked here.
  if (text.weights.empty())
    return options;
  options.weights = analysis::StepWeights::of(*text.weights);
  if (!options.weights)
    return complain("weights are eight numbers, and four for each way between two ranks, in the "
                    "order of the ranks");
  return options;
}

void addChunkPasses(OpPassManager &passes, const PipelineOptions &options) {
  passes.addPass(passes::createChunkParallelize(
      {.instances = options.instances, .shareChannels = options.shareChannels}));
  passes.addPass(passes::createChunkMarkFinal());
}

void addInstructionPasses(OpPassManager &passes, const PipelineOptions &options) {
  // The order is that of Passes.td: propagate copies before multicasts are looked for, fuse before
  // neighbours are joined.
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
  // As numbers, since options of passes are text.
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
  // Last: it turns messages of a complete schedule into accesses, and places signals by that
  // schedule.
  if (options.directGroupSize != 0 || !options.directGroups.empty())
    passes.addPass(passes::createInstUseDirectAccess({.groupSize = options.directGroupSize,
                                                      .groups = options.directGroups,
                                                      .reassociate = options.reassociate}));
}

/// What MLIR calls where a text names the pipeline.
LogicalResult addPasses(OpPassManager &passes, StringRef text, Complain complain) {
  // The same way for occlc, which makes the text itself, and occl-opt, whose user writes it.
  TextOptions parsed;
  std::string problem;
  llvm::raw_string_ostream stream(problem);
  if (failed(parsed.parseFromString(text, stream)))
    return complain(StringRef(problem).trim());
  FailureOr<PipelineOptions> options = optionsOf(parsed, complain);
  if (failed(options))
    return failure();
  addChunkPasses(passes, *options);
  addInstructionPasses(passes, *options);
  addSchedulePasses(passes, *options);
  return success();
}

} // namespace

void registerPipeline() {
  [[maybe_unused]] static const bool isRegistered = [] {
    registerPassPipeline(kPipeline, "From chunks to a scheduled program: what occlc compile runs",
                         addPasses, [](auto describe) { describe(TextOptions()); });
    return true;
  }();
}

static std::string namedPipeline(const PipelineOptions &options) {
  return std::string(kPipeline) + "{" + textOf(options) + "}";
}

std::string pipelineText(const PipelineOptions &options) {
  return "builtin.module(" + namedPipeline(options) + ")";
}

LogicalResult runPipeline(ModuleOp module, const PipelineOptions &options) {
  // Registered once; the text below names it.
  registerPipeline();
  DefaultTimingManager timing;
  timing.setEnabled(options.printTiming);
  timing.setDisplayMode(DefaultTimingManager::DisplayMode::Tree);
  TimingScope root = timing.getRootScope();
  PassManager passes(module.getContext(), ModuleOp::getOperationName());
  std::string problem;
  llvm::raw_string_ostream stream(problem);
  // Through the text, so that what is tested by occl-opt is what occlc runs.
  if (failed(parsePassPipeline(namedPipeline(options), passes, stream)))
    return module.emitError() << "the passes cannot run so: " << StringRef(problem).trim();
  // MLIR's verifier after each pass costs more than the passes.
  passes.enableVerifier(options.verifyEach);
  passes.enableTiming(root);
  return passes.run(module);
}

} // namespace occl::driver
