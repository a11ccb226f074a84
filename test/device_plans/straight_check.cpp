// straight_check <plan> <bytes>...: fails unless all ranks' thread blocks are straight for parts of
// so many bytes of floats, bound as communicators on devices bind them, and unless calls of them
// fit into the memory that the calls of a communicator share.
#include "plan/io/reader.h"
#include "runtime/cuda/calls/ordered_geometry.h"
#include "runtime/cuda/tables/limits.h"
#include "runtime/cuda/tables/straight_images.h"
#include "runtime/exec/bind/bind.h"
#include "runtime/exec/step/straight.h"
#include "test/device_plans/request.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

using namespace occl;

namespace {

bool isStraight(const plan::Plan &plan, uint64_t bytes, uint32_t rank) {
  interpreter::BindRequest request;
  request.rank = rank;
  request.count = bytes / sizeof(float);
  request.tiles = {4 << 20, 1};
  request.placement = interpreter::Placement::AtDestination;
  request.lines = interpreter::kDeviceLines;
  request.stepOperands = cuda::kMaxStepOperands;
  request.lineStepBytes = interpreter::kMaxStraightStepBytes;
  auto bound = interpreter::bind(plan, request);
  if (!bound.ok()) {
    std::fprintf(stderr, "%s\n", bound.status().message().c_str());
    return false;
  }
  return !cuda::makeStraightImages((*bound)->program()).bytes.empty();
}

/// In as much memory as a communicator has unless it is told otherwise.
bool fits(const plan::Plan &plan, uint64_t bytes, uint32_t rank, bool hasWideLines) {
  const auto sizes = cuda::OrderedGeometry::forMemory(plan.numRanks, 256 << 20, hasWideLines);
  const auto part = sizes.partFor(plan.protocol);
  interpreter::BindRequest request = requestFor(plan, bytes, rank, sizes);
  request.lines.hasWide = hasWideLines;
  auto bound = interpreter::bind(plan, request);
  if (!bound.ok()) {
    std::fprintf(stderr, "%s\n", bound.status().message().c_str());
    return false;
  }
  const uint64_t needs = cuda::largestBlock(**bound), has = part.offset + part.bytes;
  const std::string misfit = sizes.misfit(**bound, request.count);
  if (needs > has)
    std::fprintf(stderr, "needs %llu bytes for messages, there are %llu\n",
                 static_cast<unsigned long long>(needs - part.offset),
                 static_cast<unsigned long long>(part.bytes));
  if (!misfit.empty())
    std::fprintf(stderr, "%s\n", misfit.c_str());
  return needs <= has && misfit.empty();
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
      const char *what = !isStraight(*plan, bytes, rank)    ? "not straight"
                         : !fits(*plan, bytes, rank, true)  ? "does not fit"
                         : !fits(*plan, bytes, rank, false) ? "does not fit in lines of LL"
                                                            : nullptr;
      if (what == nullptr)
        continue;
      std::fprintf(stderr, "%s: %s on rank %u for parts of %llu bytes\n", argv[1], what, rank,
                   static_cast<unsigned long long>(bytes));
      return 1;
    }
  return 0;
}
