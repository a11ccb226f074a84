#include "tools/occlc/trace.h"

#include "compiler/export/TraceExport.h"
#include "compiler/topology/Machines.h"
#include "tools/occlc/output.h"
#include "tools/occlc/plan_file.h"

#include <fstream>
#include <iostream>

namespace occl::tools {

CLI::App *addTrace(CLI::App &app, TraceCommand &command) {
  CLI::App *sub = app.add_subcommand(
      "trace", "write the predicted schedule of a plan for chrome://tracing or Perfetto");
  sub->add_option("plan", command.path, "a plan, JSON or CBOR")->required();
  sub->add_option("-o,--output", command.output, "the file to write; - is standard output")
      ->capture_default_str();
  addPredictionOptions(*sub, command.prediction);
  return sub;
}

int writeTrace(const plan::Plan &plan, const topology::Topology *topology,
               const PredictionOptions &options, const std::string &output) {
  // The stream of a file is opened now, before the prediction: a wrong path need not wait for it.
  std::ofstream file;
  if (output != "-")
    file.open(output);
  std::ostream &out = output == "-" ? std::cout : file;
  support::Status status =
      exporter::writeTrace(plan, topology ? *topology : topology::sharedMemory(plan.numRanks),
                           bytesFor(plan, options), out);
  if (!status)
    return failToPredict(status);
  if (output == "-")
    return flushOutput();
  return out.flush() ? 0 : failToWrite(output);
}

int trace(const TraceCommand &command) {
  plan::VerifyResult result;
  std::optional<plan::Plan> plan = readVerified(command.path, result);
  if (!plan)
    return 1;
  std::optional<topology::Topology> topology = topologyFor(*plan, command.prediction);
  return topology ? writeTrace(*plan, &*topology, command.prediction, command.output) : 1;
}

} // namespace occl::tools
