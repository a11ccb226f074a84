#include "compiler/driver/Choice.h"

#include "compiler/cost/Predict.h"
#include "compiler/cost/Sizes.h"
#include "compiler/cost/Units.h"
#include "compiler/driver/Printing.h"
#include "compiler/topology/Machines.h"

#include <cmath>

namespace occl::driver {

namespace {

/// More than that is out of proportion to what a link needs.
constexpr uint32_t kMaxInstances = 32;

std::vector<Candidate> candidatesFor(const CompileOptions &options, const ChoiceOptions &choice) {
  std::vector<std::string> protocols{options.protocol};
  if (choice.protocol)
    protocols = {"simple", "ll", "ll128"};
  std::vector<uint32_t> instances{options.pipeline.instances};
  uint32_t budget = std::min(options.pipeline.maxThreadBlocks, kMaxInstances);
  if (choice.instances)
    for (instances = {1}; instances.back() * 2 <= budget;)
      instances.push_back(instances.back() * 2);
  std::vector<Candidate> result;
  for (const std::string &protocol : protocols)
    for (uint32_t count : instances)
      result.push_back({protocol, count, {}});
  return result;
}

CompileOptions optionsOf(CompileOptions options, const Candidate &candidate) {
  options.protocol = candidate.protocol;
  options.pipeline.instances = candidate.instances;
  return options;
}

/// Compiles the candidate and predicts it; false if it gives no valid plan.
bool tryCandidate(const CompileOptions &options, Choice &choice, Candidate &candidate) {
  Compiler compiler(options);
  if (!compiler.load() || !compiler.lower())
    return false;
  std::optional<plan::Plan> plan = compiler.exportVerifiedPlan();
  if (!plan)
    return false;
  if (choice.bytes.empty())
    choice.bytes = cost::usualSizes(*plan);
  const topology::Topology machine =
      compiler.topology() ? *compiler.topology() : topology::sharedMemory(plan->numRanks);
  for (uint64_t bytes : choice.bytes) {
    plan::Expected<cost::Prediction> prediction = cost::predict(*plan, machine, {.bytes = bytes});
    if (!prediction) {
      printError(prediction.message(), options.diagnosticFormat);
      return false;
    }
    candidate.makespans.push_back(prediction->makespan);
  }
  return true;
}

/// The logarithm of the geometric mean, but for a factor.
double score(const Candidate &candidate) {
  double sum = 0;
  for (topology::Picoseconds makespan : candidate.makespans)
    sum += std::log(static_cast<double>(makespan));
  return sum;
}

std::string describe(const Candidate &candidate) {
  return "protocol " + (candidate.protocol.empty() ? "of the source" : candidate.protocol) + ", " +
         std::to_string(candidate.instances) +
         (candidate.instances == 1 ? " instance" : " instances");
}

} // namespace

std::string Choice::text() const {
  std::string text = "chosen by prediction: " + describe(candidates[chosen]) + "\n";
  for (const Candidate &candidate : candidates) {
    text += "  " + describe(candidate) + ":";
    for (size_t i = 0; i < candidate.makespans.size(); ++i)
      text += (i == 0 ? " " : ", ") + cost::timeText(candidate.makespans[i]) + " at " +
              cost::bytesText(bytes[i]);
    text += candidate.makespans.empty() ? " not possible\n" : "\n";
  }
  return text;
}

std::optional<Choice> chooseOptions(CompileOptions &options, const ChoiceOptions &asked) {
  Choice choice;
  choice.bytes = asked.bytes;
  choice.candidates = candidatesFor(options, asked);
  for (size_t i = 0; i < choice.candidates.size(); ++i) {
    Candidate &candidate = choice.candidates[i];
    CompileOptions tried = optionsOf(options, candidate);
    tried.diagnosticFormat = DiagnosticFormat::None;
    tried.pipeline.printTiming = false;
    bool isGood = tryCandidate(tried, choice, candidate);
    if (!isGood && i == 0) {
      // What is wrong with the program is wrong with the first candidate, too: once more, aloud.
      tried.diagnosticFormat = options.diagnosticFormat;
      tryCandidate(tried, choice, candidate);
      return std::nullopt;
    }
    if (!isGood)
      candidate.makespans.clear();
    else if (score(candidate) < score(choice.candidates[choice.chosen]))
      choice.chosen = i;
  }
  options = optionsOf(options, choice.candidates[choice.chosen]);
  return choice;
}

} // namespace occl::driver
