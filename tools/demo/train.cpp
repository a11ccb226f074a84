// What data-parallel training does with its gradients, one process a rank (start it by occl-run):
// in every iteration each rank starts the all-reduce of all 161 gradient tensors of ResNet-50, in
// place, in a random order of its own, waits for all, and checks every element.
#include "runtime/api/occl.h"
#include "runtime/api/occl_insight.h"
#include "tools/demo/gradients.h"
#include "tools/demo/plans_by_size.h"
#include "tools/demo/progress_bar.h"
#include "tools/demo/resnet50.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <fmt/core.h>
#include <numeric>
#include <random>

namespace occl::demo {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  std::vector<std::string> plans;
  uint32_t iterations = 20;
  uint32_t seed = 0;
  bool preemption = true;
};

double secondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Ends the process if `result` is an error, saying what failed.
void require(occlResult_t result, const char *what) {
  if (result == occlSuccess)
    return;
  fmt::print(stderr, "{}: {}: {}\n", what, occlGetErrorString(result), occlGetLastError());
  std::exit(1);
}

class Training {
public:
  explicit Training(const Options &options);
  ~Training();

  /// Runs all iterations; occlSuccess, or how the first collective that failed ended.
  occlResult_t run();
  /// Rank 0 says what happened, summed over all ranks. A collective call.
  void summarise();
  /// Rank 0 prints who waits for whom.
  void reportDeadlock() const;
  uint32_t numRanks() const { return size; }
  bool isFirst() const { return rank == 0; }
  uint64_t numWrong() const { return wrong; }

private:
  /// A sum in place, in the sequence `id`; ends the process if no plan is meant for so many bytes.
  occlCall_t sumOf(uint64_t id, const char *name, void *values, uint64_t count,
                   occlDataType_t type) const;
  occlResult_t reduceAll();
  std::vector<int64_t> sumOverRanks(std::vector<int64_t> values);

  const Options &options;
  occlComm_t comm = nullptr;
  uint32_t rank = 0, size = 0;
  PlansBySize plans;
  std::vector<Parameter> parameters = resnet50Parameters();
  std::vector<std::vector<float>> gradients;
  std::mt19937 random;
  double reduceSeconds = 0;
  uint64_t checked = 0, wrong = 0;
};

Training::Training(const Options &options) : options(options) {
  occlConfig_t config = OCCL_CONFIG_INITIALIZER;
  // 1 is on, 2 is off; 0 would leave it to the library.
  config.preemption = options.preemption ? 1 : 2;
  require(occlCommInitFromEnv(&comm, &config), "joining the other ranks");
  require(occlCommRank(comm, &rank), "rank");
  require(occlCommSize(comm, &size), "size");
  // Each rank has an order of its own: that is what deadlocks libraries whose collectives have to
  // be called in one order.
  random.seed(options.seed + rank);
  for (const std::string &path : options.plans)
    require(plans.load(path), path.c_str());
  // Buffers once for all iterations, as a training program has them.
  for (const Parameter &parameter : parameters)
    gradients.emplace_back(parameter.numElements());
}

Training::~Training() { occlCommDestroy(comm); }

occlCall_t Training::sumOf(uint64_t id, const char *name, void *values, uint64_t count,
                           occlDataType_t type) const {
  occlCall_t call = OCCL_CALL_INITIALIZER;
  // A plan is chosen by the size of a call, as the demo's files say; all ranks have the same files
  // and so the same plan.
  const uint64_t bytes = count * (type == occlInt64 ? sizeof(int64_t) : sizeof(float));
  call.plan = plans.find(bytes);
  if (!call.plan) {
    fmt::print(stderr, "{}: no --plan is meant for {} bytes\n", name, bytes);
    std::exit(1);
  }
  // In place: the gradients become their sum.
  call.sendBuffer = call.recvBuffer = values;
  call.count = count;
  call.dataType = type;
  // The id says which calls belong together: the same tensor has the same id on all ranks, whatever
  // the order.
  call.id = id;
  call.name = name;
  return call;
}

occlResult_t Training::reduceAll() {
  // Another order in each iteration.
  std::vector<uint32_t> order(parameters.size());
  std::iota(order.begin(), order.end(), 0u);
  std::shuffle(order.begin(), order.end(), random);
  std::vector<occlRequest_t> requests;
  // All are started before any is waited for: 161 collectives are in flight at the same time.
  for (uint32_t tensor : order) {
    const occlCall_t call = sumOf(tensor, parameters[tensor].name.c_str(), gradients[tensor].data(),
                                  gradients[tensor].size(), occlFloat32);
    if (occlResult_t result = occlStart(comm, &call, nullptr, nullptr, &requests.emplace_back());
        result != occlSuccess)
      return result;
  }
  // In the order in which they were started, though they end in any.
  for (occlRequest_t request : requests)
    if (occlResult_t result = occlWait(comm, request); result != occlSuccess)
      return result;
  return occlSuccess;
}

occlResult_t Training::run() {
  Gradients formula(size);
  ProgressBar progress(isFirst() ? options.iterations : 0);
  // Filling and checking are outside of the time that is measured.
  for (uint32_t iteration = 0; iteration < options.iterations; ++iteration) {
    for (uint32_t tensor = 0; tensor < gradients.size(); ++tensor)
      formula.fill(gradients[tensor], rank, iteration, tensor);
    auto begin = Clock::now();
    if (occlResult_t result = reduceAll(); result != occlSuccess)
      return result;
    reduceSeconds += secondsSince(begin);
    // Every element is compared with the formula, which is exact in floats.
    for (uint32_t tensor = 0; tensor < gradients.size(); ++tensor)
      wrong += formula.countWrong(gradients[tensor], iteration, tensor);
    checked += gradients.size();
    progress.advance();
  }
  return occlSuccess;
}

std::vector<int64_t> Training::sumOverRanks(std::vector<int64_t> values) {
  const occlCall_t call = sumOf(0, "statistics", values.data(), values.size(), occlInt64);
  require(occlCall(comm, &call, nullptr), call.name);
  return values;
}

void Training::summarise() {
  occlStats_t own = {};
  own.size = sizeof own;
  require(occlCommGetStats(comm, &own), "statistics");
  // Sums over the ranks are made by the library itself, as 64-bit integers.
  auto asInteger = [](uint64_t value) { return static_cast<int64_t>(value); };
  auto sums = sumOverRanks({asInteger(checked), asInteger(wrong), asInteger(own.preemptions),
                            asInteger(own.contextSaves), asInteger(own.contextLoads),
                            asInteger(own.quits), asInteger(own.bytesSent)});
  wrong = static_cast<uint64_t>(sums[1]);
  if (!isFirst())
    return;
  // What one rank reduces in an iteration, in elements.
  uint64_t elements = 0;
  for (const Parameter &parameter : parameters)
    elements += parameter.numElements();
  const double perIteration = reduceSeconds / options.iterations;
  const double bytes = 4.0 * static_cast<double>(elements);
  fmt::print("  checked       {} tensors on {} ranks: {} wrong elements\n", sums[0], size, sums[1]);
  fmt::print(
      "  gradients     {:.1f} MB a rank, reduced in {:.0f} ms: {:.2f} GB/s (bus {:.2f} GB/s)\n",
      bytes * 1e-6, perIteration * 1e3, bytes * 1e-9 / perIteration,
      // Bandwidth of the bus as nccl-tests computes it: an all-reduce moves 2 (n - 1) / n of its
      // bytes over each link at the least.
      bytes * 1e-9 / perIteration * 2 * (size - 1) / size);
  fmt::print("  sent          {:.1f} GB\n", static_cast<double>(sums[6]) * 1e-9);
  fmt::print("  preemptions   {} ({} contexts saved, {} loaded), voluntary quits {}\n", sums[2],
             sums[3], sums[4], sums[5]);
  fmt::print("  task queue    mean {:.1f}, longest {} (of rank 0)\n", own.meanQueueLength,
             own.maxQueueLength);
}

void Training::reportDeadlock() const {
  if (isFirst())
    fmt::print("{}\n", occlCommGetLastError(comm));
}

/// The exit status.
int train(const Options &options) {
  // One rank prints.
  Training training(options);
  if (training.isFirst())
    fmt::print("  161 tensors, {} ranks, {} iterations, seed {}, preemption {}\n",
               training.numRanks(), options.iterations, options.seed,
               options.preemption ? "on" : "off");
  occlResult_t result = training.run();
  // With preemption every run has to succeed, and sums have to be right.
  if (options.preemption) {
    require(result, "all-reduce");
    training.summarise();
    return training.numWrong() == 0 ? 0 : 1;
  }
  // Without, the demo shows the deadlock that the library finds and reports instead of hanging.
  if (result == occlDeadlock) {
    training.reportDeadlock();
    return 0;
  }
  fmt::print(stderr, "expected a deadlock without preemption, got: {}\n",
             occlGetErrorString(result));
  return 1;
}

} // namespace
} // namespace occl::demo

int main(int argc, char **argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ); // whoever reads a pipe sees the progress too
  CLI::App app("Reduces the gradients of ResNet-50; start it by occl-run.", "train");
  app.footer(
      "Example:\n  occl-run -n 8 train --plan one_shot.plan.json --plan all_pairs.plan.json");
  occl::demo::Options options;
  std::string preemption = "on";
  app.add_option("--plan", options.plans,
                 "plan of an all-reduce; the first that suits a size is used")
      ->required();
  app.add_option("--iterations", options.iterations, "default 20")->check(CLI::Range(1, 1000000));
  app.add_option("--seed", options.seed, "of the orders of submission");
  app.add_option("--preemption", preemption, "off: succeeds if the ranks end in a deadlock")
      ->check(CLI::IsMember({"on", "off"}));
  CLI11_PARSE(app, argc, argv);
  options.preemption = preemption == "on";
  return occl::demo::train(options);
}
