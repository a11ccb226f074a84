// One rank of data-parallel training of ResNet-50 (start it by occl-run): in every iteration all
// ranks start the 161 gradient all-reduces in the same order, last layer first, as the backward
// pass has them; one rank is late with each. Writes for every iteration and collective how often it
// was preempted, how many visits moved nothing, and how long the task queue was when it came in.
#include "runtime/api/occl.h"
#include "runtime/api/occl_insight.h"
#include "tools/demo/plans_by_size.h"
#include "tools/demo/resnet50.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fmt/core.h>
#include <map>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace occl::bench {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  std::vector<std::string> plans;
  uint32_t spinMicroseconds = 0; // as measured
  uint32_t orderPolicy = 0, budgetPolicy = 0;
  uint32_t lateRank = 2;
  uint32_t delayMicroseconds = 100;
  uint32_t iterations = 5;
  std::string output;
};

void require(occlResult_t result, const char *what) {
  if (result == occlSuccess)
    return;
  fmt::print(stderr, "{}: {}: {}\n", what, occlGetErrorString(result), occlGetLastError());
  std::exit(1);
}

/// What a collective had been through at some time.
struct Seen {
  uint64_t preemptions = 0, vainVisits = 0, queueLengths = 0;
};

class Rank {
public:
  explicit Rank(const Options &options);
  ~Rank();
  void run();

private:
  occlCall_t callOf(uint64_t id, const char *name, std::span<float> data) const;
  void meet();
  double reduceAll();
  std::vector<Seen> look() const;
  void check(uint32_t iteration) const;
  void write(uint32_t iteration, double seconds, const std::vector<Seen> &before,
             const std::vector<Seen> &after) const;

  const Options &options;
  occlComm_t comm = nullptr;
  uint32_t rank = 0, numRanks = 0;
  demo::PlansBySize plans;
  std::vector<demo::Parameter> tensors = demo::resnet50Parameters();
  std::vector<std::vector<float>> gradients;
  std::FILE *file = nullptr;
};

Rank::Rank(const Options &options) : options(options) {
  occlConfig_t config = OCCL_CONFIG_INITIALIZER;
  config.spinMicroseconds = options.spinMicroseconds;
  config.orderPolicy = options.orderPolicy;
  config.budgetPolicy = options.budgetPolicy;
  require(occlCommInitFromEnv(&comm, &config), "joining the other ranks");
  require(occlCommRank(comm, &rank), "rank");
  require(occlCommSize(comm, &numRanks), "size");
  for (const std::string &path : options.plans)
    require(plans.load(path), path.c_str());
  std::ranges::reverse(tensors); // the order of the backward pass
  for (const demo::Parameter &tensor : tensors)
    gradients.emplace_back(tensor.numElements());
  std::string path = fmt::format("{}.{}", options.output, rank);
  file = std::fopen(path.c_str(), "w");
  if (!file) {
    std::perror(path.c_str());
    std::exit(1);
  }
}

Rank::~Rank() {
  std::fclose(file);
  require(occlCommDestroy(comm), "leaving");
}

/// A sum in place.
occlCall_t Rank::callOf(uint64_t id, const char *name, std::span<float> data) const {
  occlCall_t call = OCCL_CALL_INITIALIZER;
  call.plan = plans.find(data.size_bytes());
  if (!call.plan) {
    fmt::print(stderr, "{}: no --plan is meant for {} bytes\n", name, data.size_bytes());
    std::exit(1);
  }
  call.sendBuffer = call.recvBuffer = data.data();
  call.count = data.size();
  call.id = id;
  call.name = name;
  return call;
}

/// Returns when all ranks have called it.
void Rank::meet() {
  float one = 1;
  const occlCall_t call = callOf(0, "meeting", {&one, 1});
  require(occlCall(comm, &call, nullptr), "meeting");
}

/// Seconds until the last callback.
double Rank::reduceAll() {
  std::atomic<uint32_t> left{static_cast<uint32_t>(tensors.size())};
  occlCallback_t callback = [](occlRequest_t, occlResult_t result, void *user) {
    if (result == occlSuccess)
      static_cast<std::atomic<uint32_t> *>(user)->fetch_sub(1);
  };
  auto begin = Clock::now();
  for (uint64_t id = 0; id < tensors.size(); ++id) {
    if (rank == options.lateRank)
      std::this_thread::sleep_for(std::chrono::microseconds(options.delayMicroseconds));
    const occlCall_t call = callOf(id, tensors[id].name.c_str(), gradients[id]);
    require(occlStart(comm, &call, callback, &left, nullptr), "starting");
  }
  while (left.load() != 0) {
    if (const char *failure = occlCommGetLastError(comm); *failure != '\0') {
      fmt::print(stderr, "rank {}: {}\n", rank, failure);
      std::exit(1);
    }
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

std::vector<Seen> Rank::look() const {
  std::vector<Seen> all;
  for (uint64_t id = 0; id < tensors.size(); ++id) {
    occlCollectiveStats_t stats{};
    occlBlockStats_t blocks{};
    stats.size = sizeof stats;
    blocks.size = sizeof blocks;
    require(occlCollectiveGetStats(comm, id, &stats), "statistics");
    require(occlCollectiveGetBlockStats(comm, id, OCCL_ALL_BLOCKS, &blocks), "statistics");
    all.push_back(
        {blocks.preemptions, blocks.contextLoads - blocks.contextSaves, stats.queueLengths});
  }
  return all;
}

void Rank::check(uint32_t iteration) const {
  auto expected = static_cast<float>(numRanks * (iteration + 1));
  for (const std::vector<float> &gradient : gradients)
    for (float element : {gradient.front(), gradient[gradient.size() / 2], gradient.back()})
      if (element != expected) {
        fmt::print(stderr, "rank {}: got {}, expected {}\n", rank, element, expected);
        std::exit(1);
      }
}

void Rank::write(uint32_t iteration, double seconds, const std::vector<Seen> &before,
                 const std::vector<Seen> &after) const {
  for (size_t id = 0; id < after.size(); ++id)
    fmt::print(file, "{} {:.6f} {} {} {} {}\n", iteration, seconds, id,
               after[id].preemptions - before[id].preemptions,
               after[id].vainVisits - before[id].vainVisits,
               after[id].queueLengths - before[id].queueLengths);
}

void Rank::run() {
  std::vector<Seen> before(tensors.size()); // of ids that are started nothing is known before
  for (uint32_t iteration = 0; iteration < options.iterations; ++iteration) {
    for (std::vector<float> &gradient : gradients)
      std::ranges::fill(gradient, static_cast<float>(iteration + 1));
    meet();
    double seconds = reduceAll();
    check(iteration);
    std::vector<Seen> after = look();
    write(iteration, seconds, before, after);
    before = std::move(after);
  }
}

} // namespace
} // namespace occl::bench

int main(int argc, char **argv) {
  CLI::App app("One rank of the training that bench/stickiness measures.", "stickiness_rank");
  occl::bench::Options options;
  app.add_option("--plan", options.plans, "of an all-reduce")->required();
  app.add_option("--spin-us", options.spinMicroseconds, "budget at the front of the queue");
  const std::map<std::string, uint32_t> orders = {
      {"priority", occlOrderPriority}, {"fifo", occlOrderFifo}, {"newest", occlOrderNewest}};
  const std::map<std::string, uint32_t> budgets = {{"front-heavy", occlBudgetFrontHeavy},
                                                   {"flat", occlBudgetFlat},
                                                   {"no-polling", occlBudgetNoPolling}};
  app.add_option("--order", options.orderPolicy, "order policy; default: the library's")
      ->transform(CLI::CheckedTransformer(orders));
  app.add_option("--budget", options.budgetPolicy, "budget policy; default: the library's")
      ->transform(CLI::CheckedTransformer(budgets));
  app.add_option("--late-rank", options.lateRank, "default 2");
  app.add_option("--delay-us", options.delayMicroseconds,
                 "of each of its submissions; default 100");
  app.add_option("--iterations", options.iterations, "default 5");
  app.add_option("--output", options.output, "<output>.<rank> gets the numbers")->required();
  CLI11_PARSE(app, argc, argv);
  occl::bench::Rank(options).run();
}
