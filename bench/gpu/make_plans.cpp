// make_plans <directory>: writes the slice's plan files, <algorithm>_<ranks>x<blocks>.cbor.
#include "bench/gpu/plans.h"
#include "plan/verifier.h"
#include "plan/writer.h"

#include <cstdio>

using namespace occl;

int main(int argc, char **argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: make_plans <directory>\n");
    return 2;
  }
  struct Algorithm {
    const char *name;
    plan::Plan (*make)(uint32_t numRanks, uint32_t numBlocks);
  };
  constexpr Algorithm algorithms[] = {{"one_shot", bench::oneShotAllReduce},
                                      {"two_shot", bench::twoShotAllReduce},
                                      {"ring", bench::ringAllReduce},
                                      {"copies", [](uint32_t ranks, uint32_t blocks) {
                                         return bench::oneShotAfterCopies(ranks, blocks, 32);
                                       }}};
  for (const Algorithm &algorithm : algorithms)
    for (uint32_t ranks : {2u, 4u, 8u})
      for (uint32_t blocks : {1u, 2u, 4u, 8u, 16u, 32u, 64u}) {
        plan::Plan plan = algorithm.make(ranks, blocks);
        std::string path = std::string(argv[1]) + "/" + algorithm.name + "_" +
                           std::to_string(ranks) + "x" + std::to_string(blocks) + ".cbor";
        if (auto result = plan::verifyPlan(plan); !result) {
          std::fprintf(stderr, "%s: %s\n", path.c_str(), result.text().c_str());
          return 1;
        }
        if (auto status = plan::writePlanFile(plan, path); !status) {
          std::fprintf(stderr, "%s\n", status.message().c_str());
          return 1;
        }
      }
  return 0;
}
