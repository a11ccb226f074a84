#include "tools/occl-run/plan_run.h"

#include "plan/io/reader.h"
#include "tools/occl-run/comm_scoreboard.h"
#include "tools/occl-run/elements.h"
#include "tools/occl-run/launch/launcher.h"
#include "tools/occl-run/plan_rank.h"

#include <algorithm>
#include <cstdlib>
#include <fmt/core.h>
#include <limits>
#include <new>
#include <optional>
#include <thread>
#include <utility>

namespace occl::run {
namespace {

bool failed(occlResult_t result, const char *what) {
  if (result != occlSuccess)
    fmt::print(stderr, "occl-run: {}: {}: {}\n", what, occlGetErrorString(result),
               occlGetLastError());
  return result != occlSuccess;
}

occlConfig_t configOf(const PlanRunOptions &options) {
  occlConfig_t config = OCCL_CONFIG_INITIALIZER;
  config.preemption = options.preemption ? 1 : 2;
  return config;
}

/// All iterations of a rank. False after an error, which it has printed; the other ranks know.
bool runRank(const PlanRunOptions &options, const plan::Plan &plan, uint32_t rank, occlComm_t comm,
             Scoreboard &scoreboard) {
  // Memory for buffers and their reference is the first thing that is missing with large counts;
  // the other ranks must not wait for this one.
  try {
    return PlanRank(options, plan, rank, scoreboard).run(comm);
  } catch (const std::bad_alloc &) {
    fmt::print(stderr, "occl-run: rank {}: no memory for {} elements a part\n", rank,
               options.count);
    scoreboard.fail();
    return false;
  }
}

/// The exit status of a rank that is a process.
int runProcess(const PlanRunOptions &options, const plan::Plan &plan, uint32_t rank,
               Scoreboard &scoreboard) {
  occlConfig_t config = configOf(options);
  occlComm_t comm = nullptr;
  if (failed(occlCommInitFromEnv(&comm, &config), "joining the other ranks")) {
    scoreboard.fail();
    return 1;
  }
  bool success = runRank(options, plan, rank, comm, scoreboard);
  return failed(occlCommDestroy(comm), "leaving the communicator") || !success;
}

int runThreads(const PlanRunOptions &options, const plan::Plan &plan, Scoreboard &scoreboard) {
  // Threads make one communicator together; each then is a rank of its own, as processes are.
  occlConfig_t config = configOf(options);
  std::vector<occlComm_t> comms(plan.numRanks);
  if (failed(occlCommInitAll(comms.data(), plan.numRanks, &config), "making a communicator"))
    return 1;
  std::vector<int> status(plan.numRanks);
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < plan.numRanks; ++rank)
    threads.emplace_back([&, rank] {
      bool success = runRank(options, plan, rank, comms[rank], scoreboard);
      // Destroyed by its own thread: destroying waits for the other ranks.
      status[rank] = failed(occlCommDestroy(comms[rank]), "leaving the communicator") || !success;
    });
  for (std::thread &thread : threads)
    thread.join();
  return *std::max_element(status.begin(), status.end());
}

/// Whether all sizes in bytes, and those of what a check keeps of each element, are numbers: no
/// memory is as large as the largest of them.
bool hasSizes(const PlanRunOptions &options, const plan::Plan &plan) {
  // Sixteen bytes an element: the largest type, and what a check keeps.
  constexpr uint64_t kMostElements = std::numeric_limits<int64_t>::max() / 16;
  const auto partsOf = [&](uint64_t chunks) { return chunks / plan.partChunks + 1; };
  uint64_t parts = 0;
  for (const plan::RankPlan &rank : plan.ranks)
    // Both buffers and the distance between them, in parts, rounded up.
    parts =
        std::max(parts, partsOf(rank.inputChunks) + partsOf(rank.outputChunks) +
                            partsOf(static_cast<uint64_t>(std::abs(int64_t{rank.inPlaceOffset}))));
  return options.count <= kMostElements / parts;
}

/// What would make no sense to start with; true if it printed an error.
bool isWrongUse(const PlanRunOptions &options, const plan::Plan &plan) {
  // The first reason that applies; before any process is started.
  std::string problem;
  if (options.numRanks != 0 && options.numRanks != plan.numRanks)
    problem = fmt::format("is for {} ranks, not for {}", plan.numRanks, options.numRanks);
  else if (options.inPlace && !plan.inPlace)
    problem = "is not valid in place";
  else if (!options.inPlace && !plan.outOfPlace)
    problem = "is valid in place only (--in-place)";
  else if (!hasSizes(options, plan))
    problem = fmt::format("has no buffers for --count {}: no memory is that large", options.count);
  if (!problem.empty())
    fmt::print(stderr, "occl-run: the plan {} {}\n", options.plan, problem);
  return !problem.empty();
}

template <class Names, class Value> std::string nameOf(const Names &names, Value value) {
  for (const auto &[name, candidate] : names)
    if (candidate == value)
      return name;
  return "?";
}

void printResult(const PlanRunOptions &options, const plan::Plan &plan, const Scoreboard &board) {
  // The time of an iteration is that of its slowest rank.
  std::vector<double> times;
  for (uint32_t iteration = 0; iteration < options.iterations; ++iteration)
    times.push_back(board.secondsOf(iteration));
  std::sort(times.begin(), times.end());
  // Bytes of a part, as the user gave them: not those that cross links, which depend on the plan.
  const double bytes = static_cast<double>(options.count * elementBytes(options.type));
  const double median = times[times.size() / 2];
  fmt::print("plan       {} ({}), {} ranks as {}\n", plan.name, plan.collective, plan.numRanks,
             options.threads ? "threads" : "processes");
  fmt::print("data       {} x {} a part, {}, {}, {} iterations\n", options.count,
             nameOf(dataTypes(), options.type), nameOf(operations(), options.op),
             options.inPlace ? "in place" : "out of place", options.iterations);
  fmt::print("time       median {:.1f} us, best {:.1f} us, worst {:.1f} us (slowest rank)\n",
             median * 1e6, times.front() * 1e6, times.back() * 1e6);
  fmt::print("bandwidth  {:.3f} GB/s (bytes of a part / median time)\n", bytes * 1e-9 / median);
  if (options.check && plan.hasPostcondition)
    fmt::print("check      {} wrong elements\n", board.wrong());
  else if (options.check)
    // A plan without postcondition has nothing to be compared with.
    fmt::print("check      nothing: the plan promises no result (occlc import --implements)\n");
}

/// Nothing, after a line on standard error, if it cannot be run so.
std::optional<plan::Plan> readPlan(const PlanRunOptions &options, int &status) {
  auto plan = plan::readPlanFile(options.plan);
  if (!plan) {
    fmt::print(stderr, "occl-run: {}\n", plan.message());
    status = 1;
    return std::nullopt;
  }
  if (isWrongUse(options, *plan)) {
    status = 2;
    return std::nullopt;
  }
  return std::move(*plan);
}

int runProcesses(const PlanRunOptions &options, const plan::Plan &plan, Scoreboard &scoreboard) {
  LaunchOptions launchOptions;
  launchOptions.numRanks = plan.numRanks;
  launchOptions.grace = options.grace;
  launchOptions.body = [&](uint32_t rank) { return runProcess(options, plan, rank, scoreboard); };
  return launch(launchOptions);
}

} // namespace

int runPlan(const PlanRunOptions &options) {
  int status = 0;
  const auto plan = readPlan(options, status);
  if (!plan)
    return status;
  // On other machines the ranks are started by agents, and each reads the plan itself.
  if (options.startElsewhere)
    return options.startElsewhere(plan->numRanks);
  // The ranks write their times and errors where this process reads them, in memory that they
  // share.
  auto scoreboard = SharedScoreboard::create(plan->numRanks, options.iterations);
  if (!scoreboard) {
    fmt::print(stderr, "occl-run: no memory for {} iterations\n", options.iterations);
    return 1;
  }
  status = options.threads ? runThreads(options, *plan, *scoreboard)
                           : runProcesses(options, *plan, *scoreboard);
  if (status == 0)
    printResult(options, *plan, *scoreboard);
  // Wrong elements are a failure, after the times have been printed.
  return status != 0 || scoreboard->wrong() != 0;
}

int runPlanAsRank(const PlanRunOptions &options) {
  int status = 0;
  const auto plan = readPlan(options, status);
  if (!plan)
    return status;
  // A rank that another process has started finds the others through its environment.
  occlConfig_t config = configOf(options);
  occlComm_t comm = nullptr;
  if (failed(occlCommInitFromEnv(&comm, &config), "joining the other ranks"))
    return 1;
  // Without shared memory, ranks collect what they have found by collectives of the same
  // communicator.
  CommScoreboard scoreboard(comm, options.iterations);
  uint32_t rank = 0;
  occlCommRank(comm, &rank);
  bool success = runRank(options, *plan, rank, comm, scoreboard) &&
                 !failed(scoreboard.combine(), "combining what the ranks have found");
  success = !failed(occlCommDestroy(comm), "leaving the communicator") && success;
  if (success && rank == 0)
    printResult(options, *plan, scoreboard);
  // One rank reports for all: the others would repeat it.
  return !success || (rank == 0 && scoreboard.wrong() != 0);
}

} // namespace occl::run
