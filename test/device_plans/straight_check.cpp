// straight_check <plan> <bytes>...: fails unless all ranks' thread blocks are straight for parts of
// so many bytes of floats, bound as communicators on devices bind them, and unless calls of them
// fit into the memory that the calls of a communicator share.
#include "plan/io/reader.h"
#include "runtime/cuda/calls/bind_for_device.h"
#include "runtime/cuda/calls/ordered_geometry.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

using namespace occl;

namespace {

/// In as much memory as a communicator has unless it is told otherwise. Empty, or what is wrong.
std::string check(const plan::Plan &plan, uint64_t bytes, uint32_t rank, bool hasWideLines) {
  const auto sizes =
      cuda::OrderedGeometry::forMemory(plan.numRanks, {256 << 20, 256 << 20}, hasWideLines);
  const auto made = cuda::bindForDevice(
      plan, sizes, {.rank = rank, .count = bytes / sizeof(float), .hasWideLines = hasWideLines});
  if (!made.ok())
    return (hasWideLines ? "" : "in lines of LL: ") + made.status().message();
  return hasWideLines && !made->isStraightAlone ? "not straight" : "";
}

} // namespace

int main(int argc, char **argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: straight_check <plan> <bytes>...\n");
    return 2;
  }
  auto plan = plan::readPlanFile(argv[1]);
  if (!plan) {
    std::fprintf(stderr, "%s: not a plan\n", argv[1]);
    return 2;
  }
  for (int i = 2; i < argc; ++i)
    for (uint32_t rank = 0; rank < plan->numRanks; ++rank) {
      const uint64_t bytes = std::strtoull(argv[i], nullptr, 10);
      std::string wrong = check(*plan, bytes, rank, true);
      if (wrong.empty())
        wrong = check(*plan, bytes, rank, false);
      if (wrong.empty())
        continue;
      std::fprintf(stderr, "%s: rank %u, parts of %llu bytes: %s\n", argv[1], rank,
                   static_cast<unsigned long long>(bytes), wrong.c_str());
      return 1;
    }
  return 0;
}
