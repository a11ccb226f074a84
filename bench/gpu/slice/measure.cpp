#include "bench/gpu/slice/measure.h"

#include "bench/gpu/slice/measurement.h"

#include <cstdio>

namespace occl::bench {

using namespace interpreter;

namespace {

void printRatio(const Best &interpreted, const Best &handWritten) {
  if (interpreted.time == 0)
    std::printf(" | ");
  else
    std::printf(" | %.2f", interpreted.time / handWritten.time);
}

/// One size: everything that suits it. Empty entries do not.
struct Row {
  Best lowLatency, push, pull, direct, nccl;
  InterpretedTimes oneShotPush, oneShotPull, twoShotPush, twoShotPull, ring;

  static void printHeader() {
    std::printf(
        "| bytes | hand LL | hand push | one-shot push | / hand | hand pull | one-shot pull | / "
        "hand | hand two-shot | two-shot push | / hand | two-shot pull | / hand | ring push | "
        "one-shot push, graph | two-shot push, graph | ring push, graph | NCCL, graph |\n|");
    for (unsigned i = 0; i < 18; ++i)
      std::printf("---|");
    std::printf("\n");
  }
  void printRow(uint64_t bytes) const {
    std::printf("| %llu", static_cast<unsigned long long>(bytes));
    lowLatency.print();
    push.print();
    oneShotPush.loop.print();
    printRatio(oneShotPush.loop, push);
    pull.print();
    oneShotPull.loop.print();
    printRatio(oneShotPull.loop, pull);
    direct.print();
    twoShotPush.loop.print();
    printRatio(twoShotPush.loop, direct);
    twoShotPull.loop.print();
    printRatio(twoShotPull.loop, direct);
    ring.loop.print();
    oneShotPush.graph.print();
    twoShotPush.graph.print();
    ring.graph.print();
    nccl.print();
    std::printf(" |\n");
    std::fflush(stdout);
  }
};

template <class T> Status assign(T &to, StatusOr<T> from) {
  if (from.ok())
    to = std::move(*from);
  return from.status();
}

Status measureRow(Measurement &measurement, uint64_t bytes, Row &row) {
  measurement.setBytes(bytes);
  Status status;
  auto hand = [&](Best &to, Probe probe) {
    if (status.ok())
      status = assign(to, measurement.handWritten(probe));
  };
  auto interpret = [&](InterpretedTimes &to, const char *algorithm, Placement placement) {
    if (status.ok())
      status = assign(to, measurement.interpreted(algorithm, placement));
  };
  if (bytes <= 1 << 20) {
    hand(row.lowLatency, Probe::OneShotLL);
    hand(row.push, Probe::OneShotPush);
    interpret(row.oneShotPush, "one_shot", Placement::AtDestination);
    hand(row.pull, Probe::OneShotPull);
    interpret(row.oneShotPull, "one_shot", Placement::AtSource);
  }
  if (bytes >= 16 << 10) {
    hand(row.direct, Probe::TwoShotDirect);
    interpret(row.twoShotPush, "two_shot", Placement::AtDestination);
    interpret(row.twoShotPull, "two_shot", Placement::AtSource);
  }
  if (bytes >= 4 << 20)
    interpret(row.ring, "ring", Placement::AtDestination);
  return status.ok() ? assign(row.nccl, measurement.ncclInGraph()) : status;
}

} // namespace

Status measureAll(DeviceGroup &group, const std::string &planDirectory) {
  if (group.numDevices() != group.numRanks())
    return {StatusCode::InvalidArgument, "measuring needs a device for each rank"};
  Measurement measurement(group, planDirectory);
  std::printf("NCCL %s, %u ranks, float sum, out of place, us for one all-reduce; in brackets the "
              "number of thread blocks (b) and slices a message (s) that were best\n\n",
              measurement.nccl() ? measurement.nccl()->version().c_str() : "not found",
              group.numRanks());
  Row::printHeader();
  for (uint64_t bytes = 1 << 10; bytes <= Measurement::kMaxBytes; bytes *= 4) {
    Row row;
    if (Status status = measureRow(measurement, bytes, row); !status.ok())
      return status;
    row.printRow(bytes);
  }
  return {};
}

} // namespace occl::bench
