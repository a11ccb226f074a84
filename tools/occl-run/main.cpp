#include "tools/command_line/app.h"
#include "tools/command_line/number.h"
#include "tools/occl-run/elements.h"
#include "tools/occl-run/hosts/agent.h"
#include "tools/occl-run/hosts/hosts_launcher.h"
#include "tools/occl-run/hosts_words.h"
#include "tools/occl-run/insight.h"
#include "tools/occl-run/launch/launcher.h"
#include "tools/occl-run/plan_run.h"

#include <CLI/CLI.hpp>

#include <chrono>
#include <iostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

constexpr const char *kExamples =
    "Examples:\n"
    "  occl-run -n 8 ./train --epochs 3    8 processes; occlCommInitFromEnv joins them\n"
    "  occl-run -n 2 --tag-output -- date  \"[0] \" or \"[1] \" before every line\n"
    "  occl-run --plan ring.plan.json      the plan on random data, checked and timed\n"
    "  occl-run --plan ring.plan.json --count 10007 --type half --op max --threads\n"
    "  occl-run --plan ring.plan.json --stats --trace ring.trace.json\n"
    "  occl-run --hosts a,b -n 4 ./train   two ranks on each of two machines, by ssh\n"
    "  kill -USR1 <occl-run's process>     every rank says what it waits for";

struct Options {
  uint32_t numRanks = 0, graceMs = 5000;
  bool tagOutput = false, noCheck = false, asRank = false;
  std::string type = "float", operation = "sum", preemption = "on";
  occl::run::PlanRunOptions planRun;
  occl::run::HostsWords hosts;
  occl::run::InsightOptions insight;
};

template <class Names> std::vector<std::string> namesIn(const Names &pairs) {
  std::vector<std::string> names;
  for (const auto &pair : pairs)
    names.push_back(pair.first);
  return names;
}

template <class Names> auto valueOf(const Names &pairs, const std::string &name) {
  for (const auto &[candidate, value] : pairs)
    if (candidate == name)
      return value;
  return pairs.front().second; // not reached: the name was checked
}

void addOptions(CLI::App &app, Options &options) {
  using namespace occl::run;
  PlanRunOptions &run = options.planRun;
  // Options of any job first, then those that mean something only with --plan.
  app.add_option("-n,--ranks", options.numRanks, "number of ranks")->check(CLI::Range(1, 1024));
  addHostsOptions(app, options.hosts);
  app.add_option("--grace", options.graceMs,
                 "milliseconds that the other ranks have to end after one has failed; default 5000")
      ->transform(occl::tools::wholeNumber());
  app.add_flag("--tag-output", options.tagOutput, "put the rank before every line of output");
  app.add_flag("--stats", options.insight.stats,
               "each rank prints what its collectives did and waited for");
  app.add_option("--trace", options.insight.trace,
                 "file for a trace of all ranks, for ui.perfetto.dev or chrome://tracing");
  const char *group = "With --plan";
  app.add_option("--plan", run.plan, "run this plan instead of a program")->group(group);
  app.add_option("--count", run.count, "elements of a part; default 1048576")
      ->transform(occl::tools::wholeNumber())
      ->group(group);
  app.add_option("--type", options.type, "element type; default float")
      ->check(CLI::IsMember(namesIn(dataTypes())))
      ->group(group);
  app.add_option("--op", options.operation, "reduction; default sum")
      ->check(CLI::IsMember(namesIn(operations())))
      ->group(group);
  app.add_flag("--in-place", run.inPlace, "let input and output overlap")->group(group);
  app.add_option("--iterations", run.iterations, "default 10")
      ->check(CLI::Range(1, 10000000))
      ->group(group);
  app.add_flag("--no-check", options.noCheck, "do not compare with the reference")->group(group);
  app.add_flag("--threads", run.threads, "ranks are threads, not processes")->group(group);
  app.add_option("--preemption", options.preemption, "default on")
      ->check(CLI::IsMember({"on", "off"}))
      ->group(group);
  app.add_option("--seed", run.seed, "of the data; default 1")
      ->transform(occl::tools::wholeNumber())
      ->group(group);
  app.add_flag("--as-rank", options.asRank, "be a rank of the job")->group(""); // for --hosts
}

/// By which occl-run is a rank of the plan.
std::vector<std::string> planCommand(const Options &options, const std::string &self) {
  const occl::run::PlanRunOptions &run = options.planRun;
  // Word for word what this process was told, but for what only the starting process does (hosts,
  // traces, tags). The values were checked here.
  std::vector<std::string> command = {self,
                                      "--as-rank",
                                      "--plan=" + run.plan,
                                      "--count=" + std::to_string(run.count),
                                      "--iterations=" + std::to_string(run.iterations),
                                      "--seed=" + std::to_string(run.seed),
                                      "--type=" + options.type,
                                      "--op=" + options.operation,
                                      "--preemption=" + options.preemption};
  if (run.inPlace)
    command.emplace_back("--in-place");
  if (options.noCheck)
    command.emplace_back("--no-check");
  return command;
}

/// What ranks on machines without the memory of this one cannot do; true if it printed an error.
bool isWrongUseOfHosts(const Options &options) {
  if (options.hosts.hosts.empty())
    return false;
  if (options.planRun.threads || !options.insight.trace.empty())
    std::cerr << "occl-run: --hosts goes without "
              << (options.planRun.threads ? "--threads, which are of one machine\n"
                                          : "--trace; OCCL_TRACE=<file with %r> leaves a file of "
                                            "each rank on its machine\n");
  return options.planRun.threads || !options.insight.trace.empty();
}

int launchOnHosts(const Options &options, uint32_t numRanks, std::vector<std::string> command) {
  auto launch = occl::run::hostsOptions(options.hosts, numRanks);
  if (!launch)
    return 2;
  launch->grace = std::chrono::milliseconds(options.graceMs);
  launch->tagOutput = options.tagOutput;
  launch->command = std::move(command);
  if (launch->command.empty())
    launch->command = planCommand(options, launch->agent);
  return occl::run::launchOnHosts(*launch);
}

int launchProgram(const Options &options, std::vector<std::string> command) {
  // CLI11 leaves the separator in.
  if (!command.empty() && command.front() == "--")
    command.erase(command.begin());
  const bool onHosts = !options.hosts.hosts.empty();
  // With --hosts the number of ranks may follow from the slots.
  if (command.empty() || (options.numRanks == 0 && !onHosts)) {
    std::cerr << "occl-run: needs " << (command.empty() ? "a program or --plan" : "--ranks")
              << "; see occl-run --help\n";
    return 2;
  }
  if (onHosts)
    return launchOnHosts(options, options.numRanks, std::move(command));
  // On this machine: the ranks are children of this process.
  occl::run::LaunchOptions launch;
  launch.numRanks = options.numRanks;
  launch.grace = std::chrono::milliseconds(options.graceMs);
  launch.tagOutput = options.tagOutput;
  launch.command = std::move(command);
  return occl::run::launch(launch);
}

/// Words that are no options go to a program, of which there is none beside a plan; true if it
/// printed an error.
bool isWrongUseOfPlan(const Options &options, const std::vector<std::string> &others) {
  const bool isWrong = !options.planRun.plan.empty() && !others.empty();
  if (isWrong)
    std::cerr << "occl-run: '" << others.front()
              << "' is no option, and --plan goes without a program; see occl-run --help\n";
  return isWrong;
}

int runPlan(Options &options) {
  // From the words of the command line to what they mean.
  occl::run::PlanRunOptions &run = options.planRun;
  run.numRanks = options.numRanks;
  run.grace = std::chrono::milliseconds(options.graceMs);
  run.type = valueOf(occl::run::dataTypes(), options.type);
  run.op = valueOf(occl::run::operations(), options.operation);
  run.check = !options.noCheck;
  run.preemption = options.preemption == "on";
  // A rank of a job that another occl-run has started, on whatever machine.
  if (options.asRank)
    return occl::run::runPlanAsRank(run);
  if (!options.hosts.hosts.empty())
    run.startElsewhere = [&](uint32_t numRanks) { return launchOnHosts(options, numRanks, {}); };
  return occl::run::runPlan(run);
}

} // namespace

int main(int argc, char **argv) {
  // The agent has a word of its own, before the options: what it is told comes over its input.
  if (argc == 2 && std::string_view(argv[1]) == occl::run::kAgentWord)
    return occl::run::runAgent();
  CLI::App app("Starts a program, or runs a plan, as the ranks of a job.", "occl-run");
  occl::tools::prepare(app);
  app.footer(kExamples);
  Options options;
  addOptions(app, options);
  // What begins with the program's name is not looked at, as its options are its own.
  app.prefix_command();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    app.exit(error);
    return error.get_exit_code() == 0 ? 0 : 2;
  }

  if (isWrongUseOfHosts(options) || isWrongUseOfPlan(options, app.remaining()))
    return 2;
  // Before any rank starts, since it sets their environment.
  if (!occl::run::askForInsight(options.insight))
    return 1;
  // The trace is put together even if the job has failed: then it is needed most.
  int status =
      options.planRun.plan.empty() ? launchProgram(options, app.remaining()) : runPlan(options);
  return occl::run::collectInsight(options.insight) || status != 0 ? status : 1;
}
