// straight_check <plan> <bytes>...: fails unless all ranks' thread blocks are straight for parts of
// so many bytes of floats, bound as communicators on devices bind them.
#include "plan/reader.h"
#include "runtime/cuda/limits.h"
#include "runtime/cuda/straight_images.h"
#include "runtime/interpreter/bind.h"
#include "runtime/interpreter/straight.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>

using namespace occl;

namespace {

bool isStraight(const plan::Plan &plan, uint64_t bytes, uint32_t rank) {
  interpreter::BindRequest request;
  request.rank = rank;
  request.count = bytes / sizeof(float);
  request.tiles = {4 << 20, 1};
  request.placement = interpreter::Placement::AtDestination;
  request.lines = interpreter::kDeviceLines;
  request.stepOperands = cuda::kMaxBlockOperands;
  request.lineStepBytes = interpreter::kMaxStraightStepBytes;
  auto bound = interpreter::bind(plan, request);
  if (!bound.ok()) {
    std::fprintf(stderr, "%s\n", bound.status().message().c_str());
    return false;
  }
  return !cuda::makeStraightImages((*bound)->program()).bytes.empty();
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
    for (uint32_t rank = 0; rank < plan->numRanks; ++rank)
      if (uint64_t bytes = std::strtoull(argv[i], nullptr, 10); !isStraight(*plan, bytes, rank)) {
        std::fprintf(stderr, "%s: not straight on rank %u for parts of %llu bytes\n", argv[1], rank,
                     static_cast<unsigned long long>(bytes));
        return 1;
      }
  return 0;
}
