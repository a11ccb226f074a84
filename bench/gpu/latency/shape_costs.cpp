// shape_costs <ranks> [<rounds>]: what the first call of a shape in a stream costs the host apart
// from CUDA: choosing a plan, binding it, making its tables, for the 161 all-reduces of ResNet-50,
// whose counts all differ here. Of rank 0, in one thread; needs no device. A table in Markdown.
#include "bench/gpu/latency/resnet50_counts.h"
#include "runtime/cuda/calls/bind_for_device.h"
#include "runtime/cuda/calls/ordered_geometry.h"
#include "runtime/cuda/tables/limits.h"
#include "runtime/plan_library/plan_library.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory_resource>
#include <string>
#include <vector>

namespace occl::bench {
namespace {

using Clock = std::chrono::steady_clock;

enum Part : uint8_t { Choosing, Binding, kNumParts };
constexpr std::array<const char *, kNumParts> kNames = {"choosing its plan",
                                                        "binding it and making its tables"};

/// Microseconds of all counts together.
using Times = std::array<double, kNumParts>;

template <class T> T orExit(StatusOr<T> result) {
  if (!result.ok()) {
    std::fprintf(stderr, "shape_costs: %s\n", result.status().message().c_str());
    std::exit(1);
  }
  return std::move(*result);
}

Times makeAll(const std::vector<uint64_t> &counts, uint32_t numRanks) {
  // As much memory as a communicator has unless it is told otherwise.
  const auto sizes = cuda::OrderedGeometry::forMemory(numRanks, {256 << 20, 256 << 20}, true);
  Times times = {};
  std::vector<std::byte> room(1 << 20); // as a communicator has
  for (uint64_t count : counts) {
    Clock::time_point last = Clock::now();
    const auto lap = [&](Part part) {
      const Clock::time_point now = Clock::now();
      times[part] += std::chrono::duration<double, std::micro>(now - last).count();
      last = now;
    };
    const auto chosen = orExit(plan_library::PlanLibrary::ofProcess().choose(
        {plan_library::Kind::AllReduce, numRanks, count * sizeof(float), 0,
         plan_library::PlanClass::DeviceOrdinary}));
    lap(Choosing);
    std::pmr::monotonic_buffer_resource memory(room.data(), room.size());
    orExit(cuda::bindForDevice(*chosen.plan, sizes, {.count = count}, &memory));
    lap(Binding);
  }
  return times;
}

void measure(uint32_t numRanks, size_t rounds) {
  const std::vector<uint64_t> counts = resnet50Counts();
  const Times first = makeAll(counts, numRanks);
  std::array<std::vector<double>, kNumParts> later;
  for (size_t round = 0; round < rounds; ++round) {
    const Times times = makeAll(counts, numRanks);
    for (size_t part = 0; part < kNumParts; ++part)
      later[part].push_back(times[part]);
  }
  std::printf("%u ranks, %zu counts\n\n| us a count | first | later, median of %zu |\n"
              "|---|---:|---:|\n",
              numRanks, counts.size(), rounds);
  const auto each = static_cast<double>(counts.size());
  for (size_t part = 0; part < kNumParts; ++part) {
    std::ranges::sort(later[part]);
    std::printf("| %s | %.1f | %.1f |\n", kNames[part], first[part] / each,
                rounds == 0 ? 0 : later[part][rounds / 2] / each);
  }
}

} // namespace
} // namespace occl::bench

int main(int argc, char **argv) {
  const auto number = [&](int i) { return std::strtoul(argv[i], nullptr, 10); };
  const unsigned long ranks = argc == 2 || argc == 3 ? number(1) : 0;
  if (ranks == 0 || ranks > occl::cuda::kMaxRanks) {
    std::fprintf(stderr, "usage: shape_costs <ranks, 1 to %u> [<rounds>]\n", occl::cuda::kMaxRanks);
    return 2;
  }
  occl::bench::measure(static_cast<uint32_t>(ranks), argc == 3 ? number(2) : 31);
  return 0;
}
