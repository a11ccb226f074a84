// Times of plans of one collective against each other, on ranks of several machines:
//   occl-run --hosts a,b -n 8 compare_plans INTERFACE BYTES[,BYTES...] PLAN...
// Rank 0 prints, for each size of a part in bytes and each plan, the microseconds of a call on the
// slowest rank, the median of several rounds in which the plans take turns; how the first one's
// time compares; and the bytes that rank 0's machine has sent through the interface in a call.
#include "bench/runtime/checked.h"
#include "runtime/api/occl_collectives.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace {

using occl::bench::callOf;
using occl::bench::check;

constexpr uint32_t kRounds = 5;

struct Contender {
  std::string path;
  occlPlan_t plan = nullptr;
  std::vector<double> times; // microseconds a call, by round
  double sent = 0;           // bytes of a call
};

struct Ranks {
  occlComm_t comm = nullptr;
  uint32_t rank = 0, number = 0;
  std::string interface;
};

/// As many calls as send some MiB.
uint32_t repetitionsFor(uint64_t bytes) {
  return static_cast<uint32_t>(std::clamp<uint64_t>((4 << 20) / bytes, 1, 200));
}

/// Of the own machine.
uint64_t bytesSent(const std::string &interface) {
  std::ifstream file("/proc/net/dev"); // of the own namespace
  std::string line;
  while (std::getline(file, line) && line.find(interface + ":") == std::string::npos)
    ;
  std::istringstream words(line.substr(line.find(':') + 1));
  uint64_t number = 0;
  for (int column = 0; column < 9; ++column)
    words >> number;
  return number;
}

/// Of all ranks; they have all come to it.
float greatest(const Ranks &ranks, float own) {
  float most = 0;
  check(occlAllReduce(&own, &most, 1, occlFloat32, occlMax, ranks.comm, nullptr));
  return most;
}

void call(const Ranks &ranks, const occlCall_t &what, uint32_t times) {
  for (uint32_t i = 0; i < times; ++i)
    check(occlCall(ranks.comm, &what, nullptr));
}

void measure(const Ranks &ranks, Contender &contender, const std::vector<float> &input,
             std::vector<float> &output, uint64_t bytes) {
  const occlCall_t what =
      callOf(contender.plan, input.data(), output.data(), bytes / sizeof(float));
  const uint32_t repetitions = repetitionsFor(bytes);
  call(ranks, what, 1);
  greatest(ranks, 0);
  const uint64_t before = bytesSent(ranks.interface);
  const auto begin = std::chrono::steady_clock::now();
  call(ranks, what, repetitions);
  const std::chrono::duration<float, std::micro> took = std::chrono::steady_clock::now() - begin;
  contender.times.push_back(greatest(ranks, took.count()) / static_cast<double>(repetitions));
  contender.sent = static_cast<double>(bytesSent(ranks.interface) - before) / repetitions;
}

double takeMedian(std::vector<double> &times) {
  std::ranges::sort(times);
  const double median = times[times.size() / 2];
  times.clear();
  return median;
}

void compare(const Ranks &ranks, std::vector<Contender> &contenders, uint64_t bytes) {
  // A part for each rank, whatever the collective needs of them.
  const std::vector<float> input(bytes / sizeof(float) * ranks.number, 1);
  std::vector<float> output(input.size());
  for (uint32_t round = 0; round < kRounds; ++round)
    for (Contender &contender : contenders)
      measure(ranks, contender, input, output, bytes);
  double first = 0;
  for (Contender &contender : contenders) {
    const double time = takeMedian(contender.times);
    first = first == 0 ? time : first;
    if (ranks.rank == 0)
      std::printf("| %s | %llu | %.1f | %.2f | %.0f |\n", contender.path.c_str(),
                  static_cast<unsigned long long>(bytes), time, first / time, contender.sent);
  }
  std::fflush(stdout);
}

} // namespace

int main(int argc, char **argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: compare_plans INTERFACE BYTES[,BYTES...] PLAN...\n");
    return 2;
  }
  Ranks ranks;
  ranks.interface = argv[1];
  std::vector<Contender> contenders;
  for (int i = 3; i < argc; ++i) {
    contenders.emplace_back().path = argv[i];
    check(occlPlanLoad(argv[i], &contenders.back().plan));
  }
  check(occlCommInitFromEnv(&ranks.comm, nullptr));
  check(occlCommRank(ranks.comm, &ranks.rank));
  check(occlCommSize(ranks.comm, &ranks.number));
  std::istringstream sizes(argv[2]);
  for (std::string size; std::getline(sizes, size, ',');)
    compare(ranks, contenders, std::strtoull(size.c_str(), nullptr, 10));
  check(occlCommDestroy(ranks.comm));
  for (Contender &contender : contenders)
    occlPlanDestroy(contender.plan);
}
