#include "bench/gpu/slice/peers.h"

#include "bench/gpu/nccl_library.h"

namespace occl::bench {

StatusOr<double> runProbe(DeviceGroup &group, Probe probe, const UserBuffers &buffers,
                          uint64_t count, uint32_t blocks, uint32_t warmUp, uint32_t measured) {
  constexpr uint64_t kFlagBytes = 64ull * kMaxRanks * 128; // at most 64 blocks
  uint32_t numRanks = group.numRanks();
  // Two halves; a line for each pair of floats doubles the data.
  uint64_t staging = probe == Probe::TwoShotDirect ? 0 : 2 * numRanks * count * sizeof(float) * 2;
  ProbeArguments arguments;
  std::vector<char *> reports;
  group.releasePools();
  for (uint32_t r = 0; r < numRanks; ++r) {
    arguments.inputs[r] = buffers.inputs[r];
    arguments.outputs[r] = buffers.outputs[r];
    arguments.staging[r] = group.takeFromPool(r, staging);
    arguments.flags[r] = reinterpret_cast<uint64_t *>(group.takeFromPool(r, kFlagBytes));
    reports.push_back(group.takeFromPool(r, blocks * sizeof(BlockReport)));
    if (arguments.staging[r] == nullptr || arguments.flags[r] == nullptr || reports[r] == nullptr)
      return Status(StatusCode::Again, "the pools have no room for staging");
  }
  arguments.elements = count;
  arguments.numRanks = numRanks;
  arguments.invocations = warmUp + measured;
  arguments.warmUp = warmUp;
  arguments.patience = kPatience;
  for (uint32_t r = 0; r < numRanks; ++r) {
    arguments.rank = r;
    arguments.reports = reinterpret_cast<BlockReport *>(reports[r]);
    require(cudaSetDevice(static_cast<int>(group.deviceOf(r))), "cudaSetDevice");
    require(launchProbe(probe, arguments, blocks, group.stream(group.deviceOf(r))),
            "launching the probe");
  }
  group.synchronize();
  return readReports(group, reports, blocks, measured);
}

struct Nccl::Library : NcclLibrary {
  int (*commInitAll)(void **, int, const int *);
  int (*commDestroy)(void *);
  std::vector<void *> communicators;

  bool openAll() {
    return open() && find(commInitAll, "ncclCommInitAll") && find(commDestroy, "ncclCommDestroy");
  }
};

Nccl::Nccl(DeviceGroup &group) : group(group), library(new Library) {}

std::unique_ptr<Nccl> Nccl::load(DeviceGroup &group) {
  std::unique_ptr<Nccl> nccl(new Nccl(group));
  if (group.numDevices() != group.numRanks() || !nccl->library->openAll())
    return nullptr;
  std::vector<int> devices;
  for (uint32_t r = 0; r < group.numRanks(); ++r)
    devices.push_back(static_cast<int>(r));
  std::vector<void *> &communicators = nccl->library->communicators;
  communicators.resize(devices.size());
  requireNccl(nccl->library->commInitAll(communicators.data(), static_cast<int>(devices.size()),
                                         devices.data()),
              "ncclCommInitAll");
  return nccl;
}

Nccl::~Nccl() {
  for (void *communicator : library->communicators)
    library->commDestroy(communicator);
}

std::string Nccl::version() const { return library->version(); }

double Nccl::inGraph(const UserBuffers &buffers, uint64_t count, uint32_t repetitions,
                     uint32_t replays) {
  return group.timeInGraph(repetitions, replays, {}, [&] {
    requireNccl(library->groupStart(), "ncclGroupStart");
    for (uint32_t r = 0; r < group.numRanks(); ++r)
      requireNccl(library->allReduce(buffers.inputs[r], buffers.outputs[r], count, kNcclFloat32,
                                     kNcclSum, library->communicators[r], group.stream(r)),
                  "ncclAllReduce");
    requireNccl(library->groupEnd(), "ncclGroupEnd");
  });
}

} // namespace occl::bench
