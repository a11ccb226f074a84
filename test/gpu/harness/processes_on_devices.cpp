#include "test/gpu/harness/processes_on_devices.h"

#include "test/machines/islands.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <thread>
#include <unistd.h>
#include <vector>

namespace occl::gpu_test {

uint32_t processRanks() {
  const char *given = std::getenv("OCCL_TEST_RANKS");
  return given ? static_cast<uint32_t>(std::strtoul(given, nullptr, 10)) : 2;
}

bool hasDevice() { return std::filesystem::exists("/dev/nvidia0"); }

bool areOnMachines() { return std::getenv("OCCL_TEST_MACHINES") != nullptr; }

std::function<std::string(uint32_t)>
joined(uint32_t numRanks, const std::string &name,
       const std::function<std::string(occlComm_t, uint32_t)> &body, const occlConfig_t &given) {
  const std::string where = areOnMachines() ? communicator::testing::newAddress() : name;
  return [=](uint32_t rank) -> std::string {
    if (areOnMachines())
      setenv("OCCL_HOSTID", std::to_string(rank % 2).c_str(), 1);
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0)
      return "no CUDA device";
    occlConfig_t config = given;
    config.device = rank % static_cast<uint32_t>(devices);
    cudaSetDevice(static_cast<int>(config.device));
    occlComm_t comm = nullptr;
    if (occlCommInitRank(&comm, numRanks, rank, where.c_str(), &config) != occlSuccess)
      return std::string("occlCommInitRank: ") + occlGetLastError();
    std::string wrong = body(comm, rank);
    occlCommDestroy(comm);
    return wrong;
  };
}

std::string broadcastAndEnd(occlComm_t comm, uint32_t rank, RankOnDevice &onDevice,
                            const std::function<std::string(const occlCall_t &)> &run) {
  const uint32_t root = processRanks() - 1;
  std::vector<float> data(1000, rank == root ? 7.0f : 0.0f);
  const uint64_t bytes = data.size() * sizeof(float);
  cudaMemcpy(onDevice.output(false), data.data(), bytes, cudaMemcpyHostToDevice);
  occlCall_t call = OCCL_CALL_INITIALIZER;
  call.kind = occlKindBroadcast;
  call.root = root;
  call.sendBuffer = call.recvBuffer = onDevice.output(false);
  call.count = data.size();
  call.dataType = occlFloat32;
  if (rank != root)
    std::this_thread::sleep_for(std::chrono::seconds(1));
  std::string wrong = run(call);
  if (rank == root)
    _exit(wrong.empty() ? 0 : 1);
  cudaMemcpy(data.data(), onDevice.output(false), bytes, cudaMemcpyDeviceToHost);
  if (wrong.empty() && (*occlCommGetLastError(comm) != 0 || data != std::vector(1000, 7.0f)))
    wrong = "not the data";
  return wrong.empty() ? "" : wrong + ". " + occlCommGetLastError(comm);
}

void expectAllRight(Processes &processes, uint32_t numRanks) {
  for (uint32_t r = 0; r < numRanks; ++r)
    EXPECT_EQ(processes.join(r), 0) << "rank " << r << ": " << processes.wrong(r);
}

} // namespace occl::gpu_test
