#include "bench/gpu/slice/measure.h"

#include "bench/gpu/slice/measurement.h"

#include <cstdio>

namespace occl::bench {

using namespace interpreter;

static constexpr uint32_t kInvocations = 400;

static void print(const PhaseAccount &account) {
  for (uint32_t i = 0; i < kNumPhases; ++i)
    std::printf(" | %.0f (%.1f)", double(account.cycles[i]) / kInvocations,
                double(account.counts[i]) / kInvocations);
  std::printf(" |\n");
}

static Status measure(Measurement &measurement, const char *algorithm, Placement placement) {
  const char *direction = placement == Placement::AtSource ? "pull" : "push";
  auto run = measurement.prepare({algorithm, 1, placement, 1});
  if (!run.ok())
    return run.status();
  auto time = (*run)->loop(20, kInvocations);
  if (!time.ok())
    return time.status();
  if (Status status = measurement.verify(algorithm); !status.ok())
    return status;
  for (uint32_t observer : {0u, 1u}) {
    auto account = (*run)->account(20, kInvocations, observer);
    if (!account.ok())
      return account.status();
    std::printf("| %s %s, lane %u | %.2f", algorithm, direction, observer, *time / 1e3);
    print(*account);
  }
  return {};
}

Status measureSteps(DeviceGroup &group, const std::string &planDirectory) {
  Measurement measurement(group, planDirectory);
  measurement.setBytes(group.numRanks() * sizeof(float));
  std::printf(
      "One thread block, 4 bytes a rank: all time is steps and flags. us for one all-reduce; "
      "cycles (and calls) of one lane, each phase named by the call that ends it or that it is. "
      "copies = one_shot after 32 steps that wait for nobody.\n\n"
      "| plan | us | before acquire | acquire | before vote | vote | before barrier | barrier | "
      "before fold | fold | before release | release |\n"
      "|---|---|---|---|---|---|---|---|---|---|---|---|\n");
  for (const char *algorithm : {"one_shot", "copies", "two_shot", "ring"})
    for (Placement placement : {Placement::AtDestination, Placement::AtSource})
      if (Status status = measure(measurement, algorithm, placement); !status.ok())
        return status;
  return {};
}

} // namespace occl::bench
