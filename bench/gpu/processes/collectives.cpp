// gpu_collectives <ranks> <mode>[-inplace][-bfloat16][-ordinary][-started][-machines] <collective>
// [<plan>...]
//
// Collectives through the C interface, each rank a process on a GPU of its own, beside NCCL in the
// same processes: a row for each size with microseconds for one operation, in a stream, in a graph,
// and from the call to what the host sees, one at a time. Modes: table: of the plans OCCL takes the
// first one whose range holds the size; inplace: table-inplace. each: a column for each plan and
// for NCCL, in a graph; small, large: likewise, up to 1 MiB, from 1 MiB on. ordinary: buffers of
// cudaMalloc, as programs of NCCL have them, and in a table plans that the library chooses; none
// are given. started: with each, small and large, ours by the persistent kernel, DAEMON_BLOCKS of
// it. machines: each rank as on a machine of its own. Elements are floats, or of bfloat16,
// and summed. Every result is checked, on every rank. Sizes are bytes as nccl-tests counts them.
#include "bench/gpu/processes/measured.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

using namespace occl;
using namespace occl::bench;

namespace {

constexpr uint64_t kSmallest = 1 << 10, kLargest = 1 << 30;
constexpr uint64_t kLargestOfEach = 64 << 20, kLargestOfSmall = 1 << 20;
constexpr uint64_t kSmallestOfLarge = 1 << 20;

struct Request {
  uint32_t numRanks = 0;
  bool each = false, onMachines = false;
  Given given;
  uint64_t smallest = kSmallest, largest = kLargest;
  std::string collective;
  std::vector<std::string> plans;
};

/// Of a mode and what follows it, separated by "-". False: it is none.
bool readMode(const std::string &text, Request &request) {
  std::istringstream words(text);
  std::string mode, word;
  std::getline(words, mode, '-');
  request.each = mode == "each" || mode == "small" || mode == "large";
  request.given.inPlace = mode == "inplace";
  if (!request.each && !request.given.inPlace && mode != "table")
    return false;
  if (request.each)
    request.largest = mode == "small"   ? kLargestOfSmall
                      : mode == "large" ? kLargest
                                        : kLargestOfEach;
  if (mode == "large")
    request.smallest = kSmallestOfLarge;
  while (std::getline(words, word, '-'))
    if (word == "inplace")
      request.given.inPlace = true;
    else if (word == "bfloat16")
      request.given.type = Type::Bfloat16;
    else if (word == "ordinary")
      request.given.isOrdinary = true;
    else if (word == "started" && request.each)
      request.given.isStarted = true;
    else if (word == "machines")
      request.onMachines = true;
    else
      return false;
  if (request.onMachines)
    request.largest = std::min(request.largest, kLargestOfEach);
  return true;
}

/// As the rows are called.
std::string headingOf(const Request &request) {
  return request.collective + (request.given.inPlace ? " in place" : "") +
         (request.given.type == Type::Bfloat16 ? " bfloat16" : "") +
         (request.given.isOrdinary ? " ordinary" : "") +
         (request.given.isStarted ? " started" : "") + (request.onMachines ? " machines" : "") +
         ", bytes |";
}

int measure(Together &together, uint32_t rank, const Request &request) {
  if (request.onMachines)
    standOnOwnMachine(rank);
  const char *blocks = std::getenv("DAEMON_BLOCKS");
  auto ours =
      Occl::join(together, rank, request.collective, request.plans, request.given.isOrdinary,
                 blocks ? static_cast<uint32_t>(std::strtoul(blocks, nullptr, 10)) : 0);
  auto nccl = Nccl::join(together, rank);
  Stage stage(together, rank, *ours, nccl.get(), kLargest, request.given);
  auto print = [&](const std::string &text) {
    if (rank == 0)
      std::printf("%s", text.c_str());
    std::fflush(stdout);
  };
  if (request.each) {
    print("| " + headingOf(request) + (request.given.isStarted ? " as chosen |" : ""));
    for (const std::string &plan : request.plans)
      print(" " + plan.substr(plan.rfind('/') + 1) + " |");
    if (nccl)
      print(" NCCL " + nccl->version() + " | symmetric |");
  } else {
    print("| " + headingOf(request) + " OCCL | graph | blocking | NCCL " +
          (nccl ? nccl->version() : "") +
          " | graph | blocking | symmetric | graph | blocking | best NCCL / OCCL: "
          "plain | graph | blocking |");
  }
  print("\n|");
  const size_t ofEach = request.plans.size() + (nccl ? 3 : 1) + (request.given.isStarted ? 1 : 0);
  for (size_t column = 0; column < (request.each ? ofEach : 13); ++column)
    print("---|");
  print("\n");
  for (uint64_t bytes = request.smallest; bytes <= request.largest; bytes *= 4) {
    std::string row = "| " + std::to_string(bytes) + " |";
    for (const Times &times : request.each ? stage.eachPlan(bytes) : stage.compared(bytes))
      row += request.each ? cell(times.graph) : times.text();
    print(row + "\n");
  }
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  Request request;
  bool isValid = argc >= 4 && readMode(argv[2], request);
  if (isValid) {
    request.numRanks = static_cast<uint32_t>(std::strtoul(argv[1], nullptr, 10));
    if (const char *bytes = std::getenv("OCCL_BENCH_BYTES"))
      request.smallest = request.largest = std::strtoull(bytes, nullptr, 10);
    request.collective = argv[3];
    request.plans.assign(argv + 4, argv + argc);
    isValid = request.numRanks >= 2 && request.numRanks <= 8 &&
              request.plans.empty() == (request.given.isOrdinary && !request.each);
  }
  if (!isValid) {
    std::fprintf(stderr, "usage: gpu_collectives <ranks, 2 to 8> table|inplace|each|small|large"
                         "[-inplace][-bfloat16][-ordinary][-started][-machines] <collective> "
                         "<plan>...\n"
                         "       gpu_collectives <ranks> table|inplace[-bfloat16]-ordinary"
                         "[-machines] <collective>\n");
    return 2;
  }
  if (request.given.inPlace && request.collective == "alltoall") {
    std::fprintf(stderr, "alltoall: has no form in place, neither here nor in NCCL\n");
    return 2;
  }
  return Together::run(request.numRanks, [&](Together &together, uint32_t rank) {
    return measure(together, rank, request);
  });
}
