#include "tools/occlc/explain.h"

#include "compiler/export/Explanation.h"
#include "tools/command_line/number.h"
#include "tools/occlc/output.h"
#include "tools/occlc/plan_file.h"

#include <iostream>

namespace occl::tools {

CLI::App *addExplain(CLI::App &app, ExplainCommand &command) {
  CLI::App *sub =
      app.add_subcommand("explain", "print what a plan does and why it waits, for people");
  sub->add_option("plan", command.path, "a plan, JSON or CBOR")->required();
  sub->add_option("--rank", command.rank, "only this rank")->transform(wholeNumber());
  sub->add_option("--thread-block", command.threadBlock, "only this thread block of a rank")
      ->transform(wholeNumber());
  addPredictionOptions(*sub, command.prediction);
  return sub;
}

int explain(const ExplainCommand &command) {
  // Only what is proved is explained: the rest would be about a plan that cannot run.
  plan::VerifyResult result;
  std::optional<plan::Plan> plan = readVerified(command.path, result);
  if (!plan)
    return 1;
  std::string head = "'" + command.path + "' has ";
  // The limits of rank and thread block are those of this plan, so they cannot be checked on the
  // command line.
  if (command.rank && *command.rank >= plan->numRanks)
    return fail(head + std::to_string(plan->numRanks) + " ranks; there is no rank " +
                std::to_string(*command.rank) + " [E025]");
  if (command.rank && command.threadBlock &&
      *command.threadBlock >= plan->ranks[*command.rank].numThreadBlocks)
    return fail(head + std::to_string(plan->ranks[*command.rank].numThreadBlocks) +
                " thread blocks on rank " + std::to_string(*command.rank) +
                "; there is no thread block " + std::to_string(*command.threadBlock) + " [E025]");
  // Without a topology that is named: ranks in shared memory.
  std::optional<topology::Topology> topology = topologyFor(*plan, command.prediction);
  if (!topology)
    return 1;
  support::Status status = exporter::writeExplanation(
      *plan, *topology, {command.rank, command.threadBlock, bytesFor(*plan, command.prediction)},
      std::cout);
  return status ? flushOutput() : failToPredict(status);
}

} // namespace occl::tools
