// Compiles random programs with random options, verifies the plans and executes each in random
// orders against a direct execution of its source.
//
//   random_programs [--programs n] [--seed s] [--schedules n] [--until-failure]
//
// A failure prints the program, its options, and the seed that makes this program alone.

#include "compiler/dialect/chunk/Chunk.h"
#include "compiler/dialect/inst/Inst.h"
#include "compiler/driver/Pipeline.h"
#include "compiler/driver/ScheduleOptions.h"
#include "compiler/export/PlanExport.h"
#include "plan/transform/remote_orders.h"
#include "compiler/frontend/Frontend.h"
#include "plan/testing/parts.h"
#include "plan/verify/verifier.h"
#include "test/random/generator.h"
#include "test/random/plan_execution.h"

#include <CLI/CLI.hpp>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <unistd.h>

namespace {

using namespace occl;
using namespace occl::random;

struct Settings {
  uint64_t seed = 1;
  uint64_t programs = 300;
  uint32_t schedules = 20;
  bool untilFailure = false;
};

struct Options {
  driver::PipelineOptions pipeline;
  uint32_t depth = 2;

  std::string text() const {
    return "multicast " + std::to_string(pipeline.multicast) + ", fuse " +
           std::to_string(pipeline.fuse) + ", aggregate " + std::to_string(pipeline.aggregate) +
           ", thread blocks " + std::to_string(pipeline.maxThreadBlocks) + ", depth " +
           std::to_string(depth) + ", direct groups of " +
           std::to_string(pipeline.directGroupSize) + ", order through ranks " +
           std::to_string(pipeline.orderThroughRanks) + ", " +
           driver::ScheduleOptions::of(pipeline).text(driver::ScheduleOptions()) + weightsText();
  }

  std::string weightsText() const {
    std::string text;
    if (pipeline.weights)
      for (uint32_t number : pipeline.weights->numbers())
        text += (text.empty() ? ", weights " : " ") + std::to_string(number);
    return text;
  }
};

void addTactics(driver::PipelineOptions &pipeline, Random &random) {
  pipeline.maxFanOut = random.oneOf({1u, 2u, 8u});
  pipeline.foldArrivals = !random.chance(30);
  pipeline.aggregateLocal = !random.chance(30);
  pipeline.spreadLocal = random.chance(50);
  pipeline.shareChannels = random.chance(50);
  pipeline.colors = random.oneOf({0u, 1u, 2u, 4u});
  pipeline.layout = random.oneOf({"auto", "balanced", "phases", "peers", "earliest"});
}

/// Of some machine, which favours some order of the program or other.
void addWeights(driver::PipelineOptions &pipeline, Random &random, uint32_t numRanks) {
  analysis::StepWeights &weights = pipeline.weights.emplace();
  auto any = [&] { return random.oneOf({0u, 1u, 3u, 20u, 1000u, ~0u}); };
  for (uint32_t *weight :
       {&weights.overhead, &weights.read, &weights.write, &weights.receive, &weights.send})
    *weight = any();
  weights.fetched = random.chance(50);
  weights.usual = {any(), any()};
  for (uint32_t from = 0; from < numRanks; ++from)
    if (random.chance(50))
      weights.ways.push_back({from, random.between(0, numRanks - 1), {any(), any()}});
}

Options randomOptions(Random &random) {
  Options options;
  options.pipeline.multicast = !random.chance(20);
  options.pipeline.fuse = !random.chance(20);
  options.pipeline.aggregate = !random.chance(20);
  options.pipeline.maxThreadBlocks = random.oneOf({1u, 1u, 2u, 4u});
  options.depth = random.oneOf({1u, 1u, 2u, 3u});
  return options;
}

/// One program: what is wrong with its compilation, or an empty string.
class Trial {
public:
  Trial(uint64_t seed, uint32_t schedules)
      : random(seed), schedules(schedules), program(randomShape(random), expressions),
        options(randomOptions(random)) {
    Generator(program, random).run();
    uint32_t instances = random.chance(40) ? random.between(2, 4) : 1;
    source = program.text(instances == 1 ? "" : " instances " + std::to_string(instances));
    options.pipeline.directGroupSize = random.oneOf({0u, 0u, 2u, 3u, 16u});
    options.pipeline.orderThroughRanks = random.chance(30);
    if (random.chance(50))
      addTactics(options.pipeline, random);
    if (random.chance(30))
      addWeights(options.pipeline, random, program.shape().ranks);
  }

  std::string run() {
    if (source.empty())
      return "";
    std::string error = compile();
    if (!error.empty())
      return error;
    plan::VerifyResult result = plan::verifyPlan(plan);
    if (!result)
      return "the verifier rejects the plan: " + result.text();
    smallestDepth = result.facts.smallestDepth;
    if (std::string error = dropDependency(); !error.empty())
      return error;
    return check();
  }

  std::string source;
  std::string describe() const { return source + options.text(); }

private:
  std::string compile();
  std::string dropDependency();
  std::string check();
  std::string execute(bool inPlace);
  std::string compare(PlanExecution &execution);

  Random random;
  uint32_t schedules;
  Expressions expressions;
  Reference program;
  Options options;
  plan::Plan plan;
  uint32_t smallestDepth = 0;
};

std::string Trial::compile() {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context.loadDialect<chunk::ChunkDialect, inst::InstDialect>();
  std::string messages;
  context.getDiagEngine().registerHandler([&](mlir::Diagnostic &d) { messages += d.str() + "\n"; });
  frontend::SourceManager sources;
  frontend::DiagnosticEngine diagnostics(sources);
  frontend::FileId file = sources.addText("random.coll", source);
  auto module = frontend::compileToChunks(context, sources, file, {}, diagnostics);
  if (!module || diagnostics.hasErrors())
    return "the frontend rejects the program: " + diagnostics.render();
  mlir::cast<chunk::ProgramOp>(module->getBody()->front()).setDepth(options.depth);
  if (mlir::failed(driver::runPipeline(*module, options.pipeline)))
    return "a pass fails: " + messages;
  auto exported = exporter::exportPlan(mlir::cast<inst::ProgramOp>(module->getBody()->front()));
  if (mlir::failed(exported))
    return "there is no plan: " + messages;
  plan = std::move(*exported);
  if (options.pipeline.orderThroughRanks)
    plan::leaveOutRemoteDependencies(plan);
  return "";
}

/// Without any one of its dependencies a plan is wrong.
std::string Trial::dropDependency() {
  if (plan.dependencies.empty())
    return "";
  plan::testing::Blocks blocks = plan::testing::takeApart(plan);
  uint32_t left = random.below(static_cast<uint32_t>(plan.dependencies.size()));
  for (auto &rank : blocks)
    for (auto &block : rank)
      for (plan::testing::Step &step : block) {
        if (left >= step.dependencies.size()) {
          left -= static_cast<uint32_t>(step.dependencies.size());
          continue;
        }
        step.dependencies.erase(step.dependencies.begin() + left);
        bool isRight =
            plan::verifyPlan(plan::testing::putTogether(plan, blocks), {.findSmallestDepth = false})
                .isOk();
        return isRight ? "the verifier accepts the plan without one of its dependencies" : "";
      }
  return "";
}

std::string Trial::check() {
  const Shape &shape = program.shape();
  if (plan.outOfPlace != shape.outOfPlace || plan.inPlace != shape.inPlace)
    return "the plan claims other alias modes than the program";
  if (plan.uniformChunks && !program.isUniform())
    return "the plan asks for chunks of one size without need";
  for (bool inPlace : {false, true})
    if (inPlace ? shape.inPlace : shape.outOfPlace) {
      std::string error = execute(inPlace);
      if (!error.empty())
        return error + (inPlace ? " (in place)" : " (out of place)");
    }
  return "";
}

std::string Trial::execute(bool inPlace) {
  for (uint32_t i = 0; i < schedules; ++i) {
    PlanExecution execution(plan, inPlace, smallestDepth, expressions, random);
    std::string error = execution.run();
    if (error.empty())
      error = compare(execution);
    if (!error.empty())
      return error;
  }
  if (smallestDepth > 1 &&
      PlanExecution(plan, inPlace, smallestDepth - 1, expressions, random).run() !=
          PlanExecution::kStuck)
    return "the plan completes below its smallest depth " + std::to_string(smallestDepth);
  return "";
}

/// Every chunk of the source is `factor` of the plan.
std::string Trial::compare(PlanExecution &execution) {
  uint32_t factor = plan.partChunks / program.shape().partChunks;
  for (const Required &wanted : program.required())
    for (uint32_t part = 0; part < factor; ++part) {
      uint32_t chunk = wanted.chunk * factor + part;
      auto found = execution.output(wanted.rank, chunk);
      uint32_t expected = expressions.refined(wanted.value.expression, factor, part);
      bool isReduction = wanted.value.reduction != Value::kNoReduction;
      std::string place =
          "output[" + std::to_string(wanted.rank) + "][" + std::to_string(chunk) + "]";
      if (!found)
        return place + " is never written";
      if (found->expression != expected)
        return place + " is " + expressions.text(found->expression) + ", expected " +
               expressions.text(expected);
      if (found->finals != (isReduction ? 1u : 0u))
        return place + " has passed " + std::to_string(found->finals) + " final reductions";
    }
  return "";
}

uint64_t currentSeed;

/// A crash or an endless loop says which program it was.
void reportSignal(int signal) {
  char text[128];
  int length = std::snprintf(text, sizeof text, "--- signal %d at --programs 1 --seed %llu\n",
                             signal, static_cast<unsigned long long>(currentSeed));
  if (write(STDERR_FILENO, text, static_cast<size_t>(length)) < 0)
    std::_Exit(4);
  std::_Exit(3);
}

constexpr unsigned kSecondsPerProgram = 60;

/// Number of failures.
uint64_t runAll(const Settings &settings) {
  uint64_t failures = 0, empty = 0;
  for (uint64_t i = 0; i < settings.programs; ++i) {
    currentSeed = settings.seed + i;
    alarm(kSecondsPerProgram);
    Trial trial(currentSeed, settings.schedules);
    std::string error = trial.run();
    empty += trial.source.empty();
    if (error.empty())
      continue;
    ++failures;
    std::printf("--- random_programs --programs 1 --seed %llu\n%s\n%s\n",
                static_cast<unsigned long long>(currentSeed), trial.describe().c_str(),
                error.c_str());
    if (settings.untilFailure)
      break;
  }
  std::printf("%llu programs, %llu of them without output, %llu failures\n",
              static_cast<unsigned long long>(settings.programs),
              static_cast<unsigned long long>(empty), static_cast<unsigned long long>(failures));
  return failures;
}

} // namespace

int main(int argc, char **argv) {
  Settings settings;
  CLI::App app("compiles random programs and compares their plans with a direct execution");
  app.add_option("--seed", settings.seed, "of the first program")
      ->envname("OCCL_TEST_SEED")
      ->capture_default_str();
  app.add_option("--programs", settings.programs, "how many")
      ->envname("OCCL_TEST_PROGRAMS")
      ->capture_default_str();
  app.add_option("--schedules", settings.schedules, "random orders of each plan and alias mode")
      ->capture_default_str();
  app.add_flag("--until-failure", settings.untilFailure, "end after the first failure")
      ->envname("OCCL_TEST_UNTIL_FAILURE");
  CLI11_PARSE(app, argc, argv);
  for (int signal : {SIGSEGV, SIGABRT, SIGFPE, SIGBUS, SIGALRM})
    std::signal(signal, reportSignal);
  std::printf("seed %llu, %llu programs\n", static_cast<unsigned long long>(settings.seed),
              static_cast<unsigned long long>(settings.programs));
  std::fflush(stdout);
  return runAll(settings) == 0 ? 0 : 1;
}
