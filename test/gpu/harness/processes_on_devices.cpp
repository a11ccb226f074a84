#include "test/gpu/harness/processes_on_devices.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

namespace occl::gpu_test {

uint32_t processRanks() {
  const char *given = std::getenv("OCCL_TEST_RANKS");
  return given ? static_cast<uint32_t>(std::strtoul(given, nullptr, 10)) : 2;
}

bool hasDevice() { return std::filesystem::exists("/dev/nvidia0"); }

std::function<std::string(uint32_t)>
joined(uint32_t numRanks, const std::string &name,
       const std::function<std::string(occlComm_t, uint32_t)> &body, const occlConfig_t &given) {
  return [=](uint32_t rank) -> std::string {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0)
      return "no CUDA device";
    occlConfig_t config = given;
    config.device = rank % static_cast<uint32_t>(devices);
    cudaSetDevice(static_cast<int>(config.device));
    occlComm_t comm = nullptr;
    if (occlCommInitRank(&comm, numRanks, rank, name.c_str(), &config) != occlSuccess)
      return std::string("occlCommInitRank: ") + occlGetLastError();
    std::string wrong = body(comm, rank);
    occlCommDestroy(comm);
    return wrong;
  };
}

void expectAllRight(Processes &processes, uint32_t numRanks) {
  for (uint32_t r = 0; r < numRanks; ++r)
    EXPECT_EQ(processes.join(r), 0) << "rank " << r << ": " << processes.wrong(r);
}

} // namespace occl::gpu_test
