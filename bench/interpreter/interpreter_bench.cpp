// What the interpreter costs without a daemon, on one core: a step of a tiny message, a poll in
// vain, a fold, and the processor time of whole all-reduces of 8 ranks by bytes and tile size.
//
//   interpreter_bench [seconds a row, default 0.2]
#include "plan/testing/example_plans.h"
#include "runtime/exec/conformance/simulation.h"
#include "runtime/exec/host/step_driver.h"
#include "runtime/exec/host/target_host.h"
#include "runtime/exec/reduce/fold_host.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

namespace {

using namespace occl;
using namespace occl::interpreter;
using conformance::Simulation;

double secondsPerRow = 0.2;

/// Processor time of this thread: other load of the machine counts only through the caches.
double now() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// Seconds of one call of `work`: the fastest of several averages that together take a row's time.
template <class Work> double timeOf(Work &&work) {
  double start = now(), fastest = 1e9;
  do {
    double begin = now(), elapsed;
    uint64_t calls = 0;
    do {
      work();
      ++calls;
      elapsed = now() - begin;
    } while (elapsed < secondsPerRow / 10);
    fastest = std::min(fastest, elapsed / static_cast<double>(calls));
  } while (now() - start < secondsPerRow);
  return fastest;
}

std::unique_ptr<Simulation> simulate(const plan::Plan &plan, uint64_t bytes,
                                     const TilePolicy &tiles) {
  auto made =
      Simulation::make(plan, {.count = bytes / sizeof(float), .tiles = tiles, .hostSteps = true});
  if (!made.ok()) {
    std::fprintf(stderr, "%s\n", made.status().message().c_str());
    std::exit(1);
  }
  return std::move(*made);
}

/// Runs all ranks in turn to the end; returns the slices done.
uint64_t runToEnd(Simulation &simulation, HostTarget &target) {
  simulation.restart();
  simulation.announceAll();
  uint64_t slices = 0;
  for (bool open = true; open;) {
    open = false;
    for (uint32_t r = 0; r < simulation.numRanks(); ++r)
      for (uint32_t b = 0; b < simulation.numBlocks(r); ++b) {
        StepResult result = runOnHost(simulation.invocation(r), *simulation.binding(r).steps(b),
                                      simulation.context(r, b), target, ~0u);
        slices += result.slices;
        open |= result.status != StepStatus::Finished;
      }
  }
  return slices;
}

void benchSteps() {
  std::printf("| step of 128 bytes (32 tiles, one thread) | ns |\n|---|---:|\n");
  auto target = std::make_unique<HostTarget>();
  auto row = [&](const char *name, const plan::Plan &plan) {
    auto simulation =
        simulate(plan, 128ull * plan.partChunks * 32, {.messageBytes = 128, .slicesPerMessage = 1});
    uint64_t slices = runToEnd(*simulation, *target);
    double seconds = timeOf([&] { runToEnd(*simulation, *target); });
    std::printf("| %s | %.1f |\n", name, seconds / static_cast<double>(slices) * 1e9);
  };
  row("one-shot, 2 ranks", plan::testing::oneShotAllReduce(2));
  row("one-shot, 8 ranks", plan::testing::oneShotAllReduce(8));
  row("two-shot, 8 ranks", plan::testing::twoShotAllReduce(8));
  row("ring, 8 ranks", plan::testing::ringAllReduce(8));

  auto simulation = simulate(plan::testing::ringAllReduce(8), 4096, {});
  simulation->announceAll();
  const StepTable &steps = *simulation->binding(0).steps(0);
  auto run = [&] {
    runOnHost(simulation->invocation(0), steps, simulation->context(0, 0), *target, ~0u);
  };
  run();
  double seconds = timeOf([&] {
    for (int i = 0; i < 1000; ++i)
      run();
  });
  std::printf("| poll in vain (ring) | %.1f |\n", seconds * 1e6);
}

void benchFolds() {
  std::printf("\n| fold, GB/s read | 8 KiB | 64 KiB | 8 MiB |\n|---|---:|---:|---:|\n");
  auto row = [&](DataType type, ReduceOp op, unsigned numSources) {
    std::string name = std::string(nameOf(type)) + " " + nameOf(op) + ", " +
                       std::to_string(numSources) + " sources";
    std::printf("| %s |", name.c_str());
    for (uint64_t bytes : {8u << 10, 64u << 10, 8u << 20}) {
      std::vector<std::vector<char>> buffers(numSources + 1, std::vector<char>(bytes, 0));
      std::vector<char *> pointers;
      for (auto &buffer : buffers)
        pointers.push_back(buffer.data());
      FoldFunction fold = foldTable().functions[unsigned(type)][unsigned(op)];
      double seconds =
          timeOf([&] { fold(pointers.data(), numSources, 1, bytes / sizeOf(type), 1); });
      std::printf(" %.1f |", static_cast<double>(bytes * numSources) / seconds * 1e-9);
    }
    std::printf("\n");
  };
  for (unsigned n : {2u, 3u, 5u, 8u, 16u})
    row(DataType::Float32, ReduceOp::Sum, n);
  for (unsigned type = 0; type < kNumDataTypes; ++type)
    row(DataType(type), ReduceOp::Max, 8);
  for (ReduceOp op : {ReduceOp::Sum, ReduceOp::Max})
    for (DataType type : {DataType::Float32, DataType::Float16, DataType::Bfloat16})
      row(type, op, 2);
}

void benchScaling() {
  std::printf("\n| copy of an input, GB/s read | 8 KiB | 64 KiB | 8 MiB |\n|---|---:|---:|---:|\n");
  auto row = [&](DataType type, const char *name, const Scale &scale) {
    std::printf("| %s, %s |", nameOf(type), name);
    for (uint64_t bytes : {8u << 10, 64u << 10, 8u << 20}) {
      std::vector<char> from(bytes, 0), to(bytes, 0);
      double seconds =
          timeOf([&] { scaleElements(type, scale, to.data(), from.data(), bytes / sizeOf(type)); });
      std::printf(" %.1f |", static_cast<double>(bytes) / seconds * 1e-9);
    }
    std::printf("\n");
  };
  const uint64_t factor = 0;
  for (unsigned type = 0; type < kNumDataTypes; ++type) {
    row(DataType(type), "multiplied", {&factor});
    if (isFloat(DataType(type)))
      row(DataType(type), "divided by 3", {nullptr, 3});
  }
}

void benchAllReduces() {
  constexpr uint64_t kMessages[] = {8 << 10, 16 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10};
  std::printf("\n| all-reduce of 8 ranks: us of one core, by the tile | bytes |");
  for (uint64_t message : kMessages)
    std::printf(" %llu KiB |", static_cast<unsigned long long>(message >> 10));
  std::printf("\n|---|---:|---:|---:|---:|---:|---:|---:|\n");
  auto target = std::make_unique<HostTarget>();
  auto row = [&](const char *name, const plan::Plan &plan, uint64_t bytes) {
    std::printf("| %s | %llu |", name, static_cast<unsigned long long>(bytes));
    for (uint64_t message : kMessages) {
      auto simulation = simulate(plan, bytes, {.messageBytes = message, .slicesPerMessage = 1});
      std::printf(" %.1f |", timeOf([&] { runToEnd(*simulation, *target); }) * 1e6);
      std::fflush(stdout);
    }
    std::printf("\n");
  };
  for (uint64_t bytes : {64u, 8u << 10, 64u << 10})
    row("one-shot", plan::testing::oneShotAllReduce(8), bytes);
  for (uint64_t bytes : {8u << 10, 64u << 10, 1u << 20, 16u << 20, 64u << 20}) {
    row("two-shot", plan::testing::twoShotAllReduce(8), bytes);
    row("ring", plan::testing::ringAllReduce(8), bytes);
  }
}

} // namespace

int main(int argc, char **argv) {
  if (argc > 1)
    secondsPerRow = std::atof(argv[1]);
  benchSteps();
  benchFolds();
  benchScaling();
  benchAllReduces();
  return 0;
}
