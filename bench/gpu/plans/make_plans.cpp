// make_plans <directory>: writes the plans that measure steps, copies_<ranks>x1.cbor.
#include "bench/gpu/plans/plans.h"
#include "plan/io/writer.h"
#include "plan/verify/verifier.h"

#include <cstdio>

using namespace occl;

int main(int argc, char **argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: make_plans <directory>\n");
    return 2;
  }
  for (uint32_t ranks : {2u, 4u, 8u}) {
    plan::Plan plan = bench::oneShotAfterCopies(ranks, 1, 32);
    std::string path = std::string(argv[1]) + "/copies_" + std::to_string(ranks) + "x1.cbor";
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
