#include "tools/occlc/prediction.h"

#include "compiler/cost/Sizes.h"
#include "compiler/driver/Compiler.h"
#include "compiler/export/StatsReport.h"
#include "compiler/topology/Machines.h"
#include "tools/occlc/output.h"
#include "tools/occlc/plan_file.h"

#include <iostream>

namespace occl::tools {

/// Times are in picoseconds: those of larger buffers may not fit 64 bits.
static constexpr uint64_t kMostBytes = uint64_t{1} << 40;

void addBytesOption(CLI::App &app, PredictionOptions &options) {
  app.add_option(
         "--bytes", options.bytes,
         "bytes of a part of the buffers for which to predict, such as 65536, 64KiB or 1MiB; at "
         "most 1TiB")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(uint64_t{0}, kMostBytes))
      ->allow_extra_args(false);
}

void addPredictionOptions(CLI::App &app, PredictionOptions &options) {
  addBytesOption(app, options);
  CLI::Option *topology =
      app.add_option("--topology", options.topology,
                     "what it runs on: a file with a topology; shared memory without it");
  app.add_option("-D,--define", options.defines, "a parameter of the topology: name=value")
      ->allow_extra_args(false)
      ->needs(topology);
}

std::optional<topology::Topology> topologyFor(const plan::Plan &plan,
                                              const PredictionOptions &options) {
  if (options.topology.empty())
    return topology::sharedMemory(plan.numRanks);
  return driver::loadTopology(options.topology, options.defines, diagnosticFormat());
}

uint64_t bytesFor(const plan::Plan &plan, const PredictionOptions &options) {
  if (!options.bytes.empty())
    return options.bytes.front();
  return cost::clampToPlan(plan, 1u << 20);
}

bool printStats(const plan::Plan &plan, const topology::Topology *topology,
                const PredictionOptions &options, std::ostream &out) {
  // Without sizes: some from the range that the plan is meant for.
  std::vector<uint64_t> sizes = options.bytes.empty() ? cost::usualSizes(plan) : options.bytes;
  support::Status status = exporter::writeStats(
      plan, topology ? *topology : topology::sharedMemory(plan.numRanks), sizes, out);
  if (!status)
    failToPredict(status);
  return status.isOk();
}

int stats(const std::string &path, const PredictionOptions &options) {
  plan::VerifyResult result;
  std::optional<plan::Plan> plan = readVerified(path, result);
  if (!plan)
    return 1;
  std::optional<topology::Topology> topology = topologyFor(*plan, options);
  return topology && printStats(*plan, &*topology, options, std::cout) ? flushOutput() : 1;
}

} // namespace occl::tools
