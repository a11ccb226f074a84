#include "compiler/driver/Autotuner.h"

#include "compiler/cost/Predict.h"
#include "compiler/cost/Sizes.h"
#include "compiler/cost/Units.h"
#include "compiler/driver/Printing.h"
#include "compiler/topology/Machines.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>

namespace occl::driver {

namespace {

/// Of a prediction; what follows in large buffers is like what went before. Not quite: the few that
/// are chosen from in the end are predicted at more length, as plans of many instructions see fewer
/// tiles than others.
constexpr uint64_t kSimulatedSteps = 1u << 14, kStepsOfFinalists = 1u << 18;
constexpr size_t kFinalists = 8;

/// What is tuned: all schedule options; those of local instructions, as GPUs would have them;
/// nothing.
enum class Scope : uint8_t { Nothing, Local, All };

bool allowsDirect(const CompileOptions &options) {
  return options.directInTopology || options.pipeline.directGroupSize != 0 ||
         !options.pipeline.directGroups.empty();
}

/// 1, 2, 4, ... and the budget of thread blocks.
std::vector<uint32_t> numbersOfInstances(uint32_t budget) {
  std::vector<uint32_t> numbers{1};
  while (numbers.back() <= budget / 2)
    numbers.push_back(numbers.back() * 2);
  if (numbers.back() < budget)
    numbers.push_back(budget);
  return numbers;
}

std::vector<Candidate> candidatesFor(const CompileOptions &options, const AutotuneOptions &asked,
                                     Scope scope) {
  // Ways to move data: the protocol that is set, or all of them; with and without direct accesses
  // if those are allowed.
  std::vector<std::pair<std::string, bool>> ways{{options.protocol, false}};
  if (asked.protocol)
    ways = {{"simple", true}, {"ll", true}, {"ll128", true}};
  // Buffers that others may access must be such that they can: only who compiles knows.
  if (asked.protocol && allowsDirect(options))
    ways.emplace_back("simple", false);
  // Numbers of instances: the one that is set, or 1, 2, 4 and so on.
  std::vector<uint32_t> instances{options.pipeline.instances};
  if (asked.instances)
    instances =
        numbersOfInstances(std::min(options.pipeline.maxThreadBlocks, plan::limits::kMaxChannels));
  // Each way with each number, and the usual schedule options: from these the search starts.
  std::vector<Candidate> result;
  for (const auto &[protocol, onlyMessages] : ways)
    for (uint32_t count : instances) {
      PipelineOptions pipeline = options.pipeline;
      pipeline.instances = count;
      if (scope == Scope::Local) { // where it begins; the other way is tried next
        pipeline.aggregateLocal = pipeline.aggregateLocal.value_or(true);
        pipeline.spreadLocal = pipeline.spreadLocal.value_or(false);
      }
      Candidate &candidate = result.emplace_back();
      candidate.protocol = protocol;
      candidate.onlyMessages = onlyMessages && allowsDirect(options);
      candidate.instances = count;
      candidate.schedule = ScheduleOptions::of(pipeline);
    }
  return result;
}

CompileOptions optionsOf(CompileOptions options, const Candidate &candidate) {
  options.protocol = candidate.protocol;
  // Direct accesses are left out in all the forms in which options ask for them.
  if (candidate.onlyMessages) {
    options.directInTopology = false;
    options.pipeline.directGroupSize = 0;
    options.pipeline.directGroups.clear();
  }
  options.pipeline.instances = candidate.instances;
  candidate.schedule.applyTo(options.pipeline);
  return options;
}

/// The logarithm of the geometric mean, but for a factor.
double score(const Candidate &candidate) {
  if (candidate.makespans.empty())
    return std::numeric_limits<double>::infinity();
  double sum = 0;
  for (topology::Picoseconds makespan : candidate.makespans)
    sum += std::log(static_cast<double>(makespan));
  return sum;
}

std::string describe(const Candidate &candidate) {
  const std::string schedule = candidate.schedule.text(candidate.usual);
  return "protocol " + (candidate.protocol.empty() ? "of the source" : candidate.protocol) +
         (candidate.onlyMessages ? " without direct access, " : ", ") +
         std::to_string(candidate.instances) +
         (candidate.instances == 1 ? " instance" : " instances") +
         (schedule.empty() ? "" : ", " + schedule);
}

Scope scopeOf(const CompileOptions &options, const AutotuneOptions &asked) {
  // On and off are the user's; auto depends on whether predictions mean anything: without a
  // topology they do not.
  if (asked.tuning == Tuning::On)
    return Scope::All;
  if (asked.tuning == Tuning::Off)
    return Scope::Nothing;
  if (!options.topology.empty())
    return Scope::All;
  bool isDirect = options.pipeline.directGroupSize != 0;
  return isDirect && !asked.protocol && !asked.instances ? Scope::Local : Scope::Nothing;
}

/// Tries candidates, each once.
class Search {
public:
  Search(const CompileOptions &options, const AutotuneOptions &asked)
      : options(options), scope(scopeOf(options, asked)) {
    outcome.bytes = asked.bytes;
    bool isAsked = asked.tuning == Tuning::On;
    largest = scope == Scope::Nothing ? 0 : isAsked ? kLargestAsked : kLargest;
    budget = isAsked ? kBudgetAsked : kBudget;
  }

  /// Nothing if the first candidate gives no valid plan.
  std::optional<AutotuneResult> run(const AutotuneOptions &asked) {
    // First the combinations of protocols and instances, each with its usual schedule.
    const std::vector<Candidate> candidates = candidatesFor(options, asked, scope);
    // The search space is that of the largest number of instances: some options matter only with
    // several.
    PipelineOptions largestPipeline = options.pipeline;
    largestPipeline.instances = candidates.back().instances;
    dimensions = searchSpace(largestPipeline);
    // If the first one, which is what would be compiled without tuning, gives no plan, the program
    // is at fault and not the option.
    for (const Candidate &candidate : candidates)
      if (evaluate(candidate); outcome.candidates.front().makespans.empty())
        return std::nullopt;
    // `largest` is 0 for programs that are too large to be compiled many times.
    if (largest > 0 && scope == Scope::Local) {
      Candidate spread = candidates.front();
      spread.schedule = spread.schedule.spread();
      evaluate(spread);
    } else if (largest > 0) {
      descendFromAll(candidates);
    }
    // Cut-short predictions are good enough to search with, not to decide with.
    outcome.chosen = simplestOfTheBest(finalists());
    return std::move(outcome);
  }

private:
  /// Chunk operations of a program that is tuned, without and with being told to.
  static constexpr size_t kLargest = 1u << 11, kLargestAsked = 1u << 15;
  /// Instructions that all plans tried for their schedule options have together.
  static constexpr size_t kBudget = 1u << 14, kBudgetAsked = 1u << 19;
  /// What a candidate counts at least, also one that gives no plan.
  static constexpr size_t kOfAny = 1u << 6;
  /// A change must be worth so much, or the simpler schedule stays.
  static constexpr double kWorthwhile = 1e-3;
  /// Predictions that differ by less, as a part of the makespan, say nothing.
  static constexpr double kAsFast = 5e-3;

  /// The fastest, or the one that differs least from the usual of those that are as fast: what the
  /// prediction leaves out (each message, each thread block) is for the simpler one.
  size_t simplestOfTheBest(const std::vector<size_t> &indices) const {
    // Scores are logarithms of times, summed over the sizes: the least sum is the least geometric
    // mean.
    const std::vector<Candidate> &all = outcome.candidates;
    double least = std::numeric_limits<double>::infinity();
    for (size_t i : indices)
      least = std::min(least, score(all[i]));
    // Within this much of the best, the predictions cannot tell which is faster.
    const double asFast = least + kAsFast * static_cast<double>(outcome.bytes.size());
    // Fewest instances, then fewest unusual options, then the score; the index makes it the same
    // each time.
    auto rank = [&](size_t i) {
      const ScheduleOptions &usual = scope == Scope::Local ? all.front().schedule : all[i].usual;
      return std::tuple(all[i].instances, all[i].schedule.text(usual).size(), score(all[i]), i);
    };
    size_t best = indices.front();
    for (size_t i : indices)
      if (score(all[i]) <= asFast && (score(all[best]) > asFast || rank(i) < rank(best)))
        best = i;
    return best;
  }

  /// The first candidate and the best ones of each protocol and number of instances, predicted at
  /// length if their predictions were cut short.
  std::vector<size_t> finalists() {
    // A family is what protocol, direct accesses and instances have in common: predictions within
    // one are comparable, and each should have a chance.
    std::map<std::tuple<std::string, bool, uint32_t>, std::vector<size_t>> families;
    for (size_t i = 0; i < outcome.candidates.size(); ++i) {
      const Candidate &candidate = outcome.candidates[i];
      families[{candidate.protocol, !candidate.onlyMessages, candidate.instances}].push_back(i);
    }
    std::vector<size_t> result;
    for (const auto &[family, members] : families)
      result.push_back(simplestOfTheBest(members));
    // The best families only, as each costs a long simulation.
    std::sort(result.begin(), result.end(), [&](size_t a, size_t b) {
      return std::tuple(score(outcome.candidates[a]), a) <
             std::tuple(score(outcome.candidates[b]), b);
    });
    result.resize(std::min(result.size(), kFinalists));
    // The first candidate is always among them: the result is never worse than no tuning.
    if (std::find(result.begin(), result.end(), size_t{0}) == result.end())
      result.push_back(0);
    for (size_t i : result)
      if (Candidate &finalist = outcome.candidates[i]; finalist.isCutShort) {
        Candidate again = finalist;
        again.makespans.clear();
        if (compileAndPredict(quietly(finalist), again, kStepsOfFinalists))
          finalist = again;
      }
    return result;
  }

  /// The options that a candidate stands for, to be tried.
  CompileOptions quietly(const Candidate &candidate) const {
    CompileOptions attempt = optionsOf(options, candidate);
    attempt.diagnosticFormat = DiagnosticFormat::None;
    attempt.pipeline.printTiming = false;
    return attempt;
  }

  /// The place among the candidates.
  size_t evaluate(Candidate candidate) {
    // What is unusual about it is said relative to its number of instances.
    candidate.usual = usualOf(candidate);
    std::string name = describe(candidate);
    // The search comes by the same candidate on several ways; its text is its identity.
    auto [known, isNew] = tried.try_emplace(name, outcome.candidates.size());
    if (!isNew)
      return known->second;
    // Errors of candidates are expected, and are none of the user's.
    CompileOptions attempt = quietly(candidate);
    outcome.candidates.push_back(candidate);
    spent += kOfAny;
    if (!compileAndPredict(attempt, outcome.candidates.back(), kSimulatedSteps)) {
      // What is wrong with the program is wrong with the first candidate, too: once more, aloud.
      attempt.diagnosticFormat = options.diagnosticFormat;
      if (outcome.candidates.size() == 1)
        compileAndPredict(attempt, outcome.candidates.back(), kSimulatedSteps);
      outcome.candidates.back().makespans.clear();
    }
    return known->second;
  }

  /// The schedule options of so many instances where nobody says.
  ScheduleOptions usualOf(const Candidate &candidate) const {
    // As the compiler would have it with nothing set but the number of instances.
    PipelineOptions pipeline;
    pipeline.instances = candidate.instances;
    pipeline.maxThreadBlocks = options.pipeline.maxThreadBlocks;
    pipeline.shareChannels = candidate.schedule.shareChannels;
    ScheduleOptions usual = ScheduleOptions::of(pipeline);
    usual.shareChannels = false;
    return usual;
  }

  /// False if it gives no valid plan.
  bool compileAndPredict(const CompileOptions &attempt, Candidate &candidate, uint64_t maxSteps) {
    // A whole compilation, with proof: only what is valid is a candidate.
    Compiler compiler(attempt);
    if (!compiler.load())
      return false;
    if (size_t numOps = compiler.numOps(); numOps == 0 || numOps > largest)
      largest = 0; // scheduled already, or large
    if (!compiler.lower())
      return false;
    std::optional<plan::Plan> plan = compiler.exportVerifiedPlan();
    if (!plan)
      return false;
    spent += plan->instructions.size();
    if (outcome.bytes.empty())
      outcome.bytes = cost::usualSizes(*plan);
    // Without a topology, local instructions are tuned for GPUs at a switch, as direct accesses
    // exist there; everything else for shared memory.
    const topology::Topology machine = compiler.topology() ? *compiler.topology()
                                       : scope == Scope::Local
                                           ? topology::nvlinkSwitch(plan->numRanks)
                                           : topology::sharedMemory(plan->numRanks);
    // Any size that fails makes the candidate impossible.
    for (uint64_t bytes : outcome.bytes) {
      support::Expected<cost::Prediction> prediction =
          cost::predict(*plan, machine, {.bytes = bytes, .maxSteps = maxSteps});
      if (!prediction) {
        printError(prediction.message() + " [E085]", attempt.diagnosticFormat);
        return false;
      }
      candidate.makespans.push_back(prediction->makespan);
      candidate.isCutShort |= prediction->simulatedTiles < prediction->tiles;
    }
    return true;
  }

  /// The most promising first, as long as the budget lasts.
  void descendFromAll(const std::vector<Candidate> &candidates) {
    // Two more starting points for each: they differ in several options at once, which a search
    // that changes one at a time might not find.
    for (Candidate candidate : candidates) {
      if (options.pipeline.maxThreadBlocks < 2)
        break; // no block but one to store what arrives
      const ScheduleOptions usual = candidate.schedule;
      candidate.schedule = usual.staged();
      evaluate(candidate);
      // A thread block for all of an instance: the search might go another way before it asks.
      candidate.schedule = usual;
      candidate.schedule.layout = "balanced";
      if (candidate.instances > 1 && usual.layout == ScheduleOptions().layout)
        evaluate(candidate);
    }
    // The best start first: the budget may be used up by it.
    std::vector<size_t> starts(outcome.candidates.size());
    std::iota(starts.begin(), starts.end(), size_t{0});
    std::stable_sort(starts.begin(), starts.end(), [&](size_t a, size_t b) {
      return score(outcome.candidates[a]) < score(outcome.candidates[b]);
    });
    spent = 0;
    for (size_t start : starts)
      descend(start);
  }

  /// Changes one dimension at a time to its best setting until nothing helps.
  void descend(size_t current) {
    // Coordinate descent: one dimension at a time, to its best setting, until a round changes
    // nothing.
    for (bool improved = true; improved;) {
      improved = false;
      for (const Dimension &dimension : dimensions) {
        size_t best = current;
        for (const ScheduleOptions &schedule : dimension(outcome.candidates[current].schedule)) {
          // The budget is in instructions compiled, so that it is the same on any machine.
          if (spent > budget)
            return;
          Candidate candidate = outcome.candidates[current];
          candidate.schedule = schedule;
          candidate.makespans.clear();
          size_t index = evaluate(candidate);
          // Only if it is worth the change: predictions differ by little for no reason.
          if (score(outcome.candidates[index]) < score(outcome.candidates[best]) - kWorthwhile)
            best = index;
        }
        improved |= best != current;
        current = best;
      }
    }
  }

  const CompileOptions &options;
  const Scope scope;
  std::vector<Dimension> dimensions;
  AutotuneResult outcome;
  std::map<std::string, size_t> tried; // candidates, by their description
  size_t largest = 0;                  // chunk operations of a program that is tuned; 0: none is
  size_t budget = 0, spent = 0;        // instructions
};

} // namespace

std::string AutotuneResult::text() const {
  // For people: the choice, and all candidates with their times, so that one sees what was tried.
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

bool isAutotuningAsked(const CompileOptions &options, const AutotuneOptions &asked) {
  return asked.protocol || asked.instances || scopeOf(options, asked) != Scope::Nothing;
}

std::optional<AutotuneResult> autotune(CompileOptions &options, const AutotuneOptions &asked) {
  std::optional<AutotuneResult> outcome = Search(options, asked).run(asked);
  if (outcome)
    options = optionsOf(options, outcome->candidates[outcome->chosen]);
  return outcome;
}

} // namespace occl::driver
