#include "bench/gpu/slice/measure.h"

#include "bench/gpu/slice/measurement.h"
#include "plan/model/names.h"

#include <cstdio>

namespace occl::bench {

using namespace interpreter;

static constexpr plan::Protocol kProtocols[] = {plan::Protocol::Simple, plan::Protocol::LL,
                                                plan::Protocol::LL128};
static constexpr const char *kAlgorithms[] = {"one_shot", "two_shot"};

/// All algorithms and protocols for one size, then NCCL if each rank has a device.
static Status measureRow(Measurement &measurement, uint64_t bytes) {
  measurement.setBytes(bytes);
  std::printf("| %llu", static_cast<unsigned long long>(bytes));
  for (const char *algorithm : kAlgorithms)
    for (plan::Protocol protocol : kProtocols) {
      auto times = measurement.interpreted(algorithm, Placement::AtDestination, protocol);
      if (!times.ok())
        return times.status();
      times->loop.print();
      times->graph.print();
    }
  StatusOr<Best> nccl = Best();
  if (measurement.hasDeviceEach())
    nccl = measurement.ncclInGraph();
  if (!nccl.ok())
    return nccl.status();
  nccl->print();
  std::printf(" |\n");
  std::fflush(stdout);
  return {};
}

Status measureProtocols(DeviceGroup &group, const std::string &planDirectory) {
  Measurement measurement(group, planDirectory);
  std::printf("\nProtocols, pushed, us: in a loop in the kernel, and in a graph%s\n\n| bytes",
              measurement.hasDeviceEach() ? "" : "; all ranks on one device");
  for (const char *algorithm : kAlgorithms)
    for (plan::Protocol protocol : kProtocols) {
      std::string name(plan::nameOf(protocol));
      std::printf(" | %s %s, loop | graph", algorithm, name.c_str());
    }
  std::printf(" | NCCL, graph |\n|");
  for (unsigned i = 0; i < 14; ++i)
    std::printf("---|");
  std::printf("\n");
  for (uint64_t bytes = 1 << 10; bytes <= 1 << 20; bytes *= 4)
    if (Status status = measureRow(measurement, bytes); !status.ok())
      return status;
  return {};
}

} // namespace occl::bench
