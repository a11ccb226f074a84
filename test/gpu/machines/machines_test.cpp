// Ranks on devices as of two machines: processes with host ids of their own, which meet over
// 127.0.0.1. Skipped where there is no device.
#include "plan/testing/direct_plans.h"
#include "plan/testing/example_plans.h"
#include "runtime/api/occl_collectives.h"
#include "runtime/api/occl_insight.h"
#include "runtime/api/testing/harness.h"
#include "test/gpu/harness/processes_on_devices.h"
#include "test/gpu/transfer/transfers.h"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <numeric>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace occl::gpu_test {
namespace {

using namespace std::chrono_literals;

class Machines : public testing::Test {
protected:
  void SetUp() override {
    if (!hasDevice())
      GTEST_SKIP() << "no CUDA device";
  }
  void run(const char *job, const std::function<std::string(occlComm_t, uint32_t)> &body,
           const occlConfig_t &config = smallConfig()) {
    Processes processes(processRanks(), joined(processRanks(), jobName(job), body, config));
    expectAllRight(processes, processRanks());
  }
};

/// Ints of a rank, of which sums are known.
std::vector<int32_t> numbersOf(uint32_t rank, uint64_t count) {
  std::vector<int32_t> numbers(count);
  for (uint64_t i = 0; i < count; ++i)
    numbers[i] = static_cast<int32_t>((i * 7 + i / 5000) % 1009 * (rank + 1));
  return numbers;
}

/// All-reduce of so many ints of ordinary memory, by the library's plan. "" or what is wrong.
std::string allReduceOf(occlComm_t comm, uint32_t rank, uint64_t count, cudaStream_t stream) {
  const std::vector<int32_t> mine = numbersOf(rank, count);
  DeviceBuffer input(count * sizeof(int32_t)), output(count * sizeof(int32_t));
  cudaMemcpyAsync(input.get(), mine.data(), count * sizeof(int32_t), cudaMemcpyHostToDevice,
                  stream);
  if (occlAllReduce(input.get(), output.get(), count, occlInt32, occlSum, comm, stream) !=
      occlSuccess)
    return failed("occlAllReduce");
  std::vector<int32_t> got(count), want = numbersOf(0, count);
  if (cudaStreamSynchronize(stream) != cudaSuccess || *occlCommGetLastError(comm) != 0)
    return std::string("the stream: ") + occlCommGetLastError(comm);
  cudaMemcpy(got.data(), output.get(), count * sizeof(int32_t), cudaMemcpyDeviceToHost);
  const auto n = static_cast<int32_t>(processRanks());
  for (uint64_t i = 0; i < count; ++i)
    if (got[i] != want[i] * (n * (n + 1) / 2))
      return "all-reduce of " + std::to_string(count) + ": element " + std::to_string(i) +
             " is wrong";
  return "";
}

TEST_F(Machines, AllTypesAndOperations) {
  run("types", [](occlComm_t comm, uint32_t rank) -> std::string {
    RankOnDevice onDevice(comm, rank);
    for (const Case &what : typeCasesFor(processRanks()))
      if (std::string wrong = onDevice.run(what, [] {}); !wrong.empty())
        return wrong;
    return "";
  });
}

TEST_F(Machines, AllSizesByPlansOfTheLibrary) {
  run("sizes", [](occlComm_t comm, uint32_t rank) {
    std::string wrong;
    cudaStream_t stream = nullptr;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    for (uint64_t count : {0u, 1u, 77u, 5000u, 300'000u, 3'000'001u, 16'000'000u})
      if (wrong.empty())
        wrong = allReduceOf(comm, rank, count, stream);
    cudaStreamDestroy(stream);
    return wrong;
  });
}

/// More shapes than have places, so that these are used again.
TEST_F(Machines, MoreShapesThanAreRemembered) {
  run("shapes", [](occlComm_t comm, uint32_t) -> std::string {
    const uint64_t most = 1500;
    cudaStream_t stream = nullptr;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    std::vector<int32_t> ones(most, 1), got(most);
    DeviceBuffer input(most * sizeof(int32_t)), output(most * sizeof(int32_t));
    cudaMemcpy(input.get(), ones.data(), most * sizeof(int32_t), cudaMemcpyHostToDevice);
    for (uint64_t count = 1; count <= most; ++count) {
      occlResult_t result = occlAgain; // while all that are remembered are in flight
      while (result == occlAgain)
        result = occlAllReduce(input.get(), output.get(), count, occlInt32, occlSum, comm, stream);
      if (result != occlSuccess)
        return failed("occlAllReduce");
    }
    if (cudaStreamSynchronize(stream) != cudaSuccess || *occlCommGetLastError(comm) != 0)
      return std::string("the stream: ") + occlCommGetLastError(comm);
    cudaMemcpy(got.data(), output.get(), most * sizeof(int32_t), cudaMemcpyDeviceToHost);
    cudaStreamDestroy(stream);
    return got == std::vector(most, static_cast<int32_t>(processRanks())) ? "" : "wrong sums";
  });
}

TEST_F(Machines, RandomGroupsOfTransfers) {
  const uint32_t n = processRanks();
  const uint64_t seed = testing::UnitTest::GetInstance()->random_seed() != 0
                            ? static_cast<uint64_t>(testing::UnitTest::GetInstance()->random_seed())
                            : 20261128;
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  run("transfers", [=](occlComm_t comm, uint32_t rank) {
    std::mt19937_64 random(seed);
    std::string wrong;
    cudaStream_t stream = nullptr;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    for (uint64_t round = 0; round < 12 && wrong.empty(); ++round) {
      Plan plan(n);
      for (uint32_t t = 0; t < 60; ++t) {
        const uint64_t size = random() % 3 == 0 ? random() % (5 << 20) : random() % 3000;
        plan.add(static_cast<uint32_t>(random() % n), static_cast<uint32_t>(random() % n),
                 random() % 9 == 0 ? 0 : size, random() % 16);
      }
      Buffers buffers(plan, rank);
      buffers.prepare(round, stream);
      occlGroupStart();
      for (const Sent &one : plan.sent) {
        if (one.from == rank && wrong.empty())
          wrong = buffers.call(one, true, comm, stream);
        if (one.to == rank && wrong.empty())
          wrong = buffers.call(one, false, comm, stream);
      }
      if (occlGroupEnd() != occlSuccess && wrong.empty())
        wrong = failed("occlGroupEnd");
      if (wrong.empty())
        wrong = buffers.check(round, stream);
      if (wrong.empty())
        wrong = allReduceOf(comm, rank, 1000, stream);
    }
    cudaStreamDestroy(stream);
    return wrong;
  });
}

/// What its kernel has stored is on its way when a rank has nothing more to do.
TEST_F(Machines, ARankMayLeaveRightAfterItsPart) {
  run("leaves", [](occlComm_t comm, uint32_t rank) -> std::string {
    const uint64_t count = 5'000'000;
    const std::vector<int32_t> numbers = numbersOf(0, count);
    DeviceBuffer buffer(count * sizeof(int32_t));
    if (rank == 0)
      cudaMemcpy(buffer.get(), numbers.data(), count * sizeof(int32_t), cudaMemcpyHostToDevice);
    else
      std::this_thread::sleep_for(500ms);
    if (occlBroadcast(buffer.get(), buffer.get(), count, occlInt32, 0, comm, nullptr) !=
        occlSuccess)
      return failed("occlBroadcast");
    if (rank == 0)
      return ""; // destroys the communicator
    std::vector<int32_t> got(count);
    if (cudaStreamSynchronize(nullptr) != cudaSuccess || *occlCommGetLastError(comm) != 0)
      return std::string("the stream: ") + occlCommGetLastError(comm);
    cudaMemcpy(got.data(), buffer.get(), count * sizeof(int32_t), cudaMemcpyDeviceToHost);
    return got == numbers ? "" : "not the data";
  });
}

/// Memory that is private, pinned, and written by both sides is not copied on write.
TEST_F(Machines, AForkedChildHarmsNobody) {
  run("forked", [](occlComm_t comm, uint32_t rank) {
    const pid_t child = fork();
    if (child == 0) {
      sleep(2);
      _exit(0);
    }
    cudaStream_t stream = nullptr;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    std::string wrong;
    for (uint32_t i = 0; i < 3 && wrong.empty(); ++i)
      wrong = allReduceOf(comm, rank, 200'000, stream);
    cudaStreamDestroy(stream);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    return wrong;
  });
}

/// A stopped process is no failure.
TEST_F(Machines, AStoppedRankGoesOn) {
  const auto body = [](occlComm_t comm, uint32_t rank) {
    std::string wrong;
    cudaStream_t stream = nullptr;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    for (uint32_t i = 0; i < 6 && wrong.empty(); ++i) {
      if (rank == 1 && i == 3)
        raise(SIGSTOP);
      wrong = allReduceOf(comm, rank, 400'000, stream);
    }
    cudaStreamDestroy(stream);
    return wrong;
  };
  Processes processes(processRanks(), joined(processRanks(), jobName("stopped"), body));
  siginfo_t state = {};
  waitid(P_PID, static_cast<id_t>(processes.pid(1)), &state, WSTOPPED | WEXITED | WNOWAIT);
  std::this_thread::sleep_for(2s);
  processes.signal(1, SIGCONT);
  expectAllRight(processes, processRanks());
}

TEST_F(Machines, AnotherCallIsNamedOnAllRanks) {
  run("mismatch", [](occlComm_t comm, uint32_t rank) -> std::string {
    DeviceBuffer buffer(4000);
    const uint64_t count = rank == 0 ? 1000 : 999;
    if (occlAllReduce(buffer.get(), buffer.get(), count, occlFloat32, occlSum, comm, nullptr) !=
        occlSuccess)
      return failed("occlAllReduce");
    cudaStreamSynchronize(nullptr);
    for (auto end = std::chrono::steady_clock::now() + 20s;
         *occlCommGetLastError(comm) == 0 && std::chrono::steady_clock::now() < end;)
      std::this_thread::sleep_for(1ms);
    const std::string why = occlCommGetLastError(comm);
    return why.find("another") != std::string::npos ? "" : "the error is: '" + why + "'";
  });
}

TEST_F(Machines, ADeadlineEndsAWait) {
  occlConfig_t config = smallConfig();
  config.timeoutMs = 2000;
  run(
      "deadline",
      [](occlComm_t comm, uint32_t rank) -> std::string {
        DeviceBuffer buffer(4000);
        if (rank != 0)
          std::this_thread::sleep_for(4s);
        else if (occlAllReduce(buffer.get(), buffer.get(), 1000, occlFloat32, occlSum, comm,
                               nullptr) != occlSuccess)
          return failed("occlAllReduce");
        cudaStreamSynchronize(nullptr);
        for (auto end = std::chrono::steady_clock::now() + 20s;
             *occlCommGetLastError(comm) == 0 && std::chrono::steady_clock::now() < end;)
          std::this_thread::sleep_for(1ms);
        return *occlCommGetLastError(comm) != 0 ? "" : "no failure";
      },
      config);
}

TEST_F(Machines, CallsThatCannotBeDoneAreRefused) {
  run("refused", [](occlComm_t comm, uint32_t) -> std::string {
    DeviceBuffer buffer(4000);
    const auto expectRefused = [](occlResult_t result, const char *text) -> std::string {
      const std::string why = occlGetLastError();
      return result == occlInvalidArgument && why.find(text) != std::string::npos
                 ? ""
                 : "the error is: '" + why + "'";
    };
    occlCall_t call = OCCL_CALL_INITIALIZER;
    call.kind = occlKindAllReduce;
    call.sendBuffer = call.recvBuffer = buffer.get();
    call.count = 1000;
    call.dataType = occlFloat32;
    occlRequest_t request;
    std::string wrong =
        expectRefused(occlStart(comm, &call, nullptr, nullptr, &request), "start no calls");
    if (!wrong.empty())
      return wrong;
    auto direct = communicator::testing::handleOf(plan::testing::directAllReduce(processRanks()));
    call.kind = occlKindPlan;
    call.plan = direct.get();
    return expectRefused(occlCall(comm, &call, nullptr), "ranks are on several machines");
  });
}

TEST_F(Machines, TheReportSaysWhichWay) {
  run("report", [](occlComm_t comm, uint32_t) -> std::string {
    std::vector<char> text(16384);
    if (occlCommReport(comm, text.data(), text.size(), nullptr) != occlSuccess)
      return failed("occlCommReport");
    return std::string(text.data()).find("through host memory: ranks are on several machines") !=
                   std::string::npos
               ? ""
               : std::string("the report is: ") + text.data();
  });
}

} // namespace
} // namespace occl::gpu_test
