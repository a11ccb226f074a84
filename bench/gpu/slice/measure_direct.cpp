#include "bench/gpu/slice/measure.h"

#include "bench/gpu/slice/measurement.h"

#include <cstdio>

namespace occl::bench {

using namespace interpreter;

/// One size: each algorithm where it may win.
static Status measureRow(Measurement &measurement, uint64_t bytes) {
  measurement.setBytes(bytes);
  std::printf("| %llu", static_cast<unsigned long long>(bytes));
  for (Probe probe : {Probe::OneShotPush, Probe::TwoShotDirect}) {
    Best best;
    if (probe == Probe::TwoShotDirect ? bytes >= 16 << 10 : bytes <= 1 << 20) {
      auto times = measurement.handWritten(probe);
      if (!times.ok())
        return times.status();
      best = *times;
    }
    best.print();
  }
  for (const char *algorithm : {"one_shot", "two_shot", "direct"}) {
    InterpretedTimes best;
    if (algorithm[0] != 'o' || bytes <= 1 << 20) {
      auto times = measurement.interpreted(algorithm, Placement::AtDestination);
      if (!times.ok())
        return times.status();
      best = *times;
    }
    best.loop.print();
    best.graph.print();
  }
  auto nccl = measurement.ncclInGraph();
  if (!nccl.ok())
    return nccl.status();
  nccl->print();
  std::printf(" |\n");
  std::fflush(stdout);
  return {};
}

Status measureDirect(DeviceGroup &group, const std::string &planDirectory) {
  if (group.numDevices() != group.numRanks())
    return {StatusCode::InvalidArgument, "measuring needs a device for each rank"};
  Measurement measurement(group, planDirectory);
  std::printf("\nFloat sum, us: in a loop in the kernel, and in a graph\n\n"
              "| bytes | hand push | hand two-shot | one-shot, loop | graph | two-shot, loop | "
              "graph | direct, loop | graph | NCCL, graph |\n|");
  for (unsigned i = 0; i < 10; ++i)
    std::printf("---|");
  std::printf("\n");
  for (uint64_t bytes = 1 << 10; bytes <= Measurement::kMaxBytes; bytes *= 4)
    if (Status status = measureRow(measurement, bytes); !status.ok())
      return status;
  return {};
}

} // namespace occl::bench
