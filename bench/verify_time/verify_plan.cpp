// Reads and verifies a plan, as `occlc verify` does, and says how long each took: for profiles.
//
//   verify_plan <file>
#include "plan/io/reader.h"
#include "plan/verify/verifier.h"

#include <chrono>
#include <cstdio>

int main(int argc, char **argv) {
  using namespace occl::plan;
  using Clock = std::chrono::steady_clock;
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s <file>\n", argv[0]);
    return 2;
  }
  auto seconds = [](Clock::time_point from) {
    return std::chrono::duration<double>(Clock::now() - from).count();
  };
  Clock::time_point start = Clock::now();
  occl::support::Expected<Plan> plan = readPlanFile(argv[1]);
  if (!plan) {
    std::fprintf(stderr, "error: %s\n", plan.message().c_str());
    return 1;
  }
  double reading = seconds(start);
  start = Clock::now();
  VerifyResult result = verifyPlan(*plan);
  std::printf("| plan | read, s | verified, s |\n|---|---:|---:|\n| %s | %.3f | %.3f |\n", argv[1],
              reading, seconds(start));
  std::fprintf(stderr, "%s\n", result.text().c_str());
  return result ? 0 : 1;
}
