#include "bench/gpu/latency/latency_ranks.h"

#include "runtime/api/capi/handles.h"

#include <cstdio>
#include <cstdlib>

namespace occl::bench {

void require(bool isRight, const char *what) {
  if (isRight)
    return;
  std::printf("FAILED: %s: %s\n", what, occlGetLastError());
  std::fflush(stdout);
  std::_Exit(1);
}

std::vector<LatencyRank> makeLatencyRanks(uint32_t numRanks, occlConfig_t config, uint64_t bytes) {
  int devices = 0;
  require(cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0, "no CUDA device");
  config.deviceKind = occlDeviceCuda;
  std::vector<occlComm_t> comms(numRanks);
  require(occlCommInitAll(comms.data(), numRanks, &config) == occlSuccess, "occlCommInitAll");
  std::vector<LatencyRank> ranks(numRanks);
  for (uint32_t r = 0; r < numRanks; ++r) {
    LatencyRank &rank = ranks[r];
    rank.comm = comms[r];
    rank.device = static_cast<int>(r) % devices;
    require(cudaSetDevice(rank.device) == cudaSuccess, "cudaSetDevice");
    for (void **buffer : {&rank.input, &rank.output})
      require(occlMemAlloc(rank.comm, bytes, buffer) == occlSuccess, "occlMemAlloc");
    require(cudaStreamCreateWithFlags(&rank.stream, cudaStreamNonBlocking) == cudaSuccess,
            "cudaStreamCreateWithFlags");
    require(cudaMemset(rank.input, 0, bytes) == cudaSuccess, "cudaMemset");
    require(cudaDeviceSynchronize() == cudaSuccess, "cudaDeviceSynchronize");
  }
  return ranks;
}

void destroyLatencyRanks(std::vector<LatencyRank> &ranks) {
  for (const LatencyRank &rank : ranks)
    require(cudaStreamDestroy(rank.stream) == cudaSuccess, "cudaStreamDestroy");
  for (const LatencyRank &rank : ranks)
    require(occlCommDestroy(rank.comm) == occlSuccess, "occlCommDestroy");
  ranks.clear();
}

LatencyArguments latencyArguments(int argc, char **argv, const char *name) {
  auto number = [&](int i) {
    return argc > 3 ? static_cast<uint32_t>(std::strtoul(argv[i], nullptr, 10)) : 0;
  };
  LatencyArguments arguments = {number(1), number(2), {}};
  if (arguments.numRanks == 0 || arguments.blocks == 0) {
    std::fprintf(stderr, "usage: %s <ranks> <thread blocks of the daemon> <plan>...\n", name);
    std::exit(2);
  }
  for (int i = 3; i < argc; ++i) {
    occlPlan_t plan = nullptr;
    require(occlPlanLoad(argv[i], &plan) == occlSuccess, "occlPlanLoad");
    arguments.plans.push_back(plan);
  }
  return arguments;
}

occlCall_t callOf(const LatencyRank &rank, const std::vector<occlPlan_t> &plans, uint64_t bytes) {
  occlCall_t call = OCCL_CALL_INITIALIZER;
  for (occlPlan_t plan : plans)
    if (!call.plan && plan->plan->minBytes <= bytes && bytes <= plan->plan->maxBytes)
      call.plan = plan;
  require(call.plan != nullptr, "none of the plans serves the size");
  call.sendBuffer = rank.input;
  call.recvBuffer = rank.output;
  call.count = bytes / sizeof(float);
  call.timeoutMs = 5000;
  return call;
}

void startInStream(const LatencyRank &rank, occlCall_t call) {
  call.after = &rank.stream;
  occlRequest_t request = 0;
  require(occlStart(rank.comm, &call, nullptr, nullptr, &request) == occlSuccess, "occlStart");
  require(occlStreamWait(rank.comm, request, rank.stream) == occlSuccess, "occlStreamWait");
}

} // namespace occl::bench
