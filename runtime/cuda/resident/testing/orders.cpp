#include "runtime/cuda/resident/testing/orders.h"

namespace occl::cuda::resident {

void printCounts(OneDevice &group) {
  auto sum = [&](Count what) {
    uint64_t total = 0;
    for (uint32_t r = 0; r < group.numRanks(); ++r)
      total += group.daemon(r).total(what);
    return static_cast<unsigned long long>(total);
  };
  unsigned long long starts = 0;
  for (uint32_t r = 0; r < group.numRanks(); ++r)
    starts += group.daemon(r).starts();
  std::printf("  all ranks: %llu visits, %llu that moved, %llu preemptions, contexts: %llu loads, "
              "%llu saves, images: %llu loads, %llu thread blocks, %llu starts\n",
              sum(Count::Visits), sum(Count::Moves), sum(Count::Preemptions),
              sum(Count::ContextLoads), sum(Count::ContextSaves), sum(Count::ImageLoads),
              sum(Count::Finished), starts);
}

} // namespace occl::cuda::resident
