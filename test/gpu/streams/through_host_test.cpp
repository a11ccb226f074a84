// Which way data goes between ranks on devices, and what that means for calls: the ranks are
// processes, so that each may have an environment of its own. Skipped where there is no device.
#include "plan/testing/direct_plans.h"
#include "runtime/api/occl_collectives.h"
#include "runtime/api/occl_insight.h"
#include "test/gpu/harness/processes_on_devices.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

namespace occl::gpu_test {
namespace {

std::string reportOf(occlComm_t comm) {
  std::vector<char> text(16384);
  return occlCommReport(comm, text.data(), text.size(), nullptr) == occlSuccess
             ? text.data()
             : std::string(occlGetLastError());
}

std::string expectReport(occlComm_t comm, const std::string &line) {
  const std::string report = reportOf(comm);
  return report.find(line + "\n") != std::string::npos ? "" : "the report is: " + report;
}

/// A variable of the environment, before the rank joins.
struct Variable {
  const char *name, *value;
};

class ThroughHost : public testing::Test {
protected:
  void SetUp() override {
    if (!hasDevice())
      GTEST_SKIP() << "no CUDA device";
  }
  /// variable(rank): its name may be null.
  template <class VariableOf>
  void run(const char *job, const VariableOf &variable,
           const std::function<std::string(occlComm_t, uint32_t)> &body,
           const occlConfig_t &config = smallConfig()) {
    const auto join = joined(processRanks(), jobName(job), body, config);
    Processes processes(processRanks(), [&](uint32_t rank) {
      if (const Variable set = variable(rank); set.name)
        setenv(set.name, set.value, 1);
      return join(rank);
    });
    expectAllRight(processes, processRanks());
  }
  static Variable disabled(uint32_t) { return {"OCCL_P2P_DISABLE", "1"}; }
};

TEST_F(ThroughHost, TheReportSaysWhichWay) {
  const std::string through = "data goes through host memory: peer access is disabled on rank 0 "
                              "(OCCL_P2P_DISABLE=1)";
  run(
      "path-default", [](uint32_t) { return Variable{}; },
      [](occlComm_t comm, uint32_t) {
        return expectReport(comm, "data goes from device to device");
      });
  for (const char *name : {"OCCL_P2P_DISABLE", "NCCL_P2P_DISABLE"})
    run(
        name,
        [&](uint32_t) {
          return Variable{name, "1"};
        },
        [&](occlComm_t comm, uint32_t) { return expectReport(comm, through); });
}

/// Also in a communicator that is made of it.
TEST_F(ThroughHost, OneRankDecidesForAll) {
  run(
      "path-of-one", [](uint32_t rank) { return rank == 1 ? disabled(1) : Variable{}; },
      [](occlComm_t comm, uint32_t rank) -> std::string {
        const std::string line = "data goes through host memory: peer access is disabled on rank 1 "
                                 "(OCCL_P2P_DISABLE=1)";
        setenv("OCCL_P2P_DISABLE", "1", 1); // for areBuffersShared()
        std::string wrong = expectReport(comm, line);
        occlComm_t divided = nullptr;
        if (wrong.empty() && occlCommSplit(comm, 0, 0, nullptr, &divided) != occlSuccess)
          wrong = occlGetLastError();
        for (occlComm_t each : {comm, divided})
          if (wrong.empty()) {
            RankOnDevice onDevice(each, rank);
            wrong = runAllReduces(onDevice, processRanks());
          }
        occlCommDestroy(divided);
        return wrong;
      });
}

TEST_F(ThroughHost, AnotherValueIsRefused) {
  Processes processes(1, [](uint32_t) -> std::string {
    setenv("OCCL_P2P_DISABLE", "yes", 1);
    occlConfig_t config = smallConfig();
    occlComm_t comm = nullptr;
    if (occlCommInitAll(&comm, 1, &config) != occlInvalidArgument)
      return "not refused";
    const std::string text = occlGetLastError();
    return text.find("OCCL_P2P_DISABLE is 'yes', expected 1") != std::string::npos ? "" : text;
  });
  EXPECT_EQ(processes.join(0), 0) << processes.wrong(0);
}

TEST_F(ThroughHost, PlansThatAccessBuffersAreRefused) {
  run("path-direct", disabled, [](occlComm_t comm, uint32_t rank) -> std::string {
    RankOnDevice onDevice(comm, rank);
    Case what;
    what.plan = plan::testing::directAllReduce(processRanks());
    what.count = 1000;
    const std::string wrong =
        callInStream(comm, what, onDevice.input(true), onDevice.output(true), onDevice.stream());
    if (wrong.find("accesses other ranks' buffers, and data goes through host memory") ==
        std::string::npos)
      return "not refused: " + wrong;
    remember(comm, what);
    const occlResult_t result =
        runKnown(comm, what.id, onDevice.input(true), onDevice.output(true));
    return result == occlInvalidArgument ? "" : "not refused when it is started";
  });
}

/// Rank r has r + 1 + i % 8 in element i.
std::string allReduce(occlComm_t comm, uint32_t rank, uint64_t count, bool isStarted) {
  float *buffer = nullptr;
  if (occlMemAlloc(comm, count * sizeof(float), reinterpret_cast<void **>(&buffer)) != occlSuccess)
    return std::string("occlMemAlloc: ") + occlGetLastError();
  const uint32_t n = processRanks();
  std::vector<float> data(count), expected(count);
  for (uint64_t i = 0; i < count; ++i) {
    data[i] = static_cast<float>(rank + 1 + i % 8);
    expected[i] = static_cast<float>(n * (n + 1) / 2 + n * (i % 8));
  }
  cudaStream_t stream = nullptr;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  cudaMemcpyAsync(buffer, data.data(), count * sizeof(float), cudaMemcpyHostToDevice, stream);
  cudaStreamSynchronize(stream);
  occlResult_t result = occlSuccess;
  if (isStarted) {
    occlCall_t call = OCCL_CALL_INITIALIZER;
    call.kind = occlKindAllReduce;
    call.sendBuffer = call.recvBuffer = buffer;
    call.count = count;
    call.dataType = occlFloat32;
    call.op = occlSum;
    call.id = 1 + count;
    occlRequest_t request = 0;
    result = occlStart(comm, &call, nullptr, nullptr, &request);
    if (result == occlSuccess)
      result = occlWait(comm, request);
  } else {
    result = occlAllReduce(buffer, buffer, count, occlFloat32, occlSum, comm, stream);
  }
  if (result != occlSuccess)
    return occlGetLastError();
  cudaMemcpyAsync(data.data(), buffer, count * sizeof(float), cudaMemcpyDeviceToHost, stream);
  const cudaError_t ended = cudaStreamSynchronize(stream);
  cudaStreamDestroy(stream);
  occlMemFree(comm, buffer);
  if (ended != cudaSuccess)
    return cudaGetErrorName(ended);
  const auto [at, other] = std::ranges::mismatch(data, expected);
  return at == data.end()
             ? ""
             : "element " + std::to_string(at - data.begin()) + " of " + std::to_string(count) +
                   " is " + std::to_string(*at) + ", not " + std::to_string(*other);
}

/// Though all buffers are registered, the library chooses none with direct access.
TEST_F(ThroughHost, TheLibrarysPlansAreThoseOfOrdinaryBuffers) {
  occlConfig_t config = smallConfig();
  config.arenaBytes = 256 << 20;
  config.registeredBuffers = 1;
  run(
      "path-library", disabled,
      [](occlComm_t comm, uint32_t rank) -> std::string {
        for (const bool isStarted : {false, true})
          for (uint64_t count : {1, 250, 16000, 262147, 4000001})
            if (std::string wrong = allReduce(comm, rank, count, isStarted); !wrong.empty())
              return (isStarted ? "started: " : "in a stream: ") + wrong;
        return "";
      },
      config);
}

} // namespace
} // namespace occl::gpu_test
