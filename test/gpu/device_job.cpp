#include "test/gpu/device_job.h"

#include "plan/names.h"
#include "plan/testing/direct_plans.h"
#include "plan/testing/example_plans.h"
#include "runtime/communicator/testing/harness.h"
#include "runtime/interpreter/conformance/reference.h"

#include <chrono>
#include <thread>

namespace occl::gpu_test {

using namespace interpreter;
using communicator::testing::handleOf;

namespace {

constexpr uint64_t kBufferBytes = 1 << 20;
constexpr uint64_t kGuardBytes = 256;
constexpr char kSpoilt = 0x5a;

std::string failed(const char *what, cudaError_t error) {
  return error == cudaSuccess ? "" : std::string(what) + ": " + cudaGetErrorString(error);
}

} // namespace

std::string Case::name() const {
  return plan.name + ", " + std::string(plan::nameOf(plan.protocol)) + ", " +
         std::to_string(count) + " elements of " + nameOf(type) + ", " + nameOf(op) +
         ", misaligned by " + std::to_string(misalignment) +
         (isRegistered ? ", registered buffers" : "") + (way == Way::Graph ? ", in a graph" : "");
}

RankOnDevice::RankOnDevice(occlComm_t comm, uint32_t rank) : comm(comm), rank(rank) {
  cudaStreamCreateWithFlags(&work, cudaStreamNonBlocking);
  for (char **buffer : {&inputs[0], &outputs[0]})
    cudaMalloc(reinterpret_cast<void **>(buffer), kBufferBytes);
  for (char **buffer : {&inputs[1], &outputs[1]})
    occlMemAlloc(comm, kBufferBytes, reinterpret_cast<void **>(buffer));
}

RankOnDevice::~RankOnDevice() {
  cudaFree(inputs[0]);
  cudaFree(outputs[0]);
  cudaStreamDestroy(work);
}

std::string RankOnDevice::synchronize() {
  using Clock = std::chrono::steady_clock;
  auto end = Clock::now() + std::chrono::seconds(30);
  for (;;) {
    cudaError_t state = cudaStreamQuery(work);
    if (state != cudaErrorNotReady)
      return failed("cudaStreamQuery", state);
    if (Clock::now() > end)
      return "the stream does not end";
    std::this_thread::yield();
  }
}

std::string RankOnDevice::enqueue(const Case &what) {
  occlResult_t result = occlEnqueue(comm, what.id, inputs[what.isRegistered] + what.misalignment,
                                    outputs[what.isRegistered] + what.misalignment, work);
  return result == occlSuccess ? "" : std::string("occlEnqueue: ") + occlGetLastError();
}

std::string RankOnDevice::spoilOutput(const Case &what) {
  return failed("cudaMemsetAsync",
                cudaMemsetAsync(outputs[what.isRegistered], kSpoilt, kBufferBytes, work));
}

std::string RankOnDevice::check(const Case &what, const std::vector<char> &expected) {
  std::string wrong = synchronize();
  if (!wrong.empty())
    return wrong;
  std::vector<char> actual(what.misalignment + expected.size() + kGuardBytes);
  wrong = failed("cudaMemcpyAsync", cudaMemcpyAsync(actual.data(), outputs[what.isRegistered],
                                                    actual.size(), cudaMemcpyDeviceToHost, work));
  if (wrong.empty())
    wrong = synchronize();
  const char *failure = occlCommGetLastError(comm);
  if (*failure != 0)
    return failure;
  for (size_t i = 0; i < actual.size() && wrong.empty() && !expected.empty(); ++i) {
    bool isInside = i >= what.misalignment && i < what.misalignment + expected.size();
    if (actual[i] != (isInside ? expected[i - what.misalignment] : kSpoilt))
      wrong = "byte " + std::to_string(i) + " of the output is wrong";
  }
  return wrong;
}

std::string RankOnDevice::runEager(const Case &what, const std::vector<char> &expected) {
  std::string wrong;
  for (uint32_t i = 0; i < 6 && wrong.empty(); ++i) {
    wrong = spoilOutput(what);
    if (wrong.empty())
      wrong = enqueue(what);
    if (wrong.empty() && i % 2 == 1) // else the next one follows at once
      wrong = check(what, expected);
  }
  return wrong;
}

std::string RankOnDevice::runGraph(const Case &what, const std::vector<char> &expected,
                                   const std::function<void()> &meet) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  std::string wrong =
      failed("capture", cudaStreamBeginCapture(work, cudaStreamCaptureModeThreadLocal));
  for (uint32_t i = 0; i < 2 && wrong.empty(); ++i)
    wrong = enqueue(what);
  if (cudaError_t error = cudaStreamEndCapture(work, &graph); wrong.empty())
    wrong = failed("end of capture", error);
  if (wrong.empty())
    wrong = failed("instantiate", cudaGraphInstantiate(&executable, graph, 0));
  if (wrong.empty())
    wrong = failed("upload", cudaGraphUpload(executable, work));
  if (wrong.empty())
    wrong = synchronize();
  meet(); // no graph is made while others run
  for (uint32_t i = 0; i < 5 && wrong.empty(); ++i) {
    wrong = spoilOutput(what);
    if (wrong.empty())
      wrong = failed("replay", cudaGraphLaunch(executable, work));
    if (wrong.empty() && i % 2 == 1)
      wrong = enqueue(what);
    if (wrong.empty())
      wrong = check(what, expected);
  }
  meet();
  if (executable)
    cudaGraphExecDestroy(executable);
  if (graph)
    cudaGraphDestroy(graph);
  return wrong;
}

occlResult_t registerCase(occlComm_t comm, const Case &what, uint32_t timeoutMs) {
  auto handle = handleOf(what.plan);
  occlPlan_t plan = handle.get();
  occlCollective_t given = OCCL_COLLECTIVE_INITIALIZER;
  given.id = what.id;
  given.name = what.plan.name.c_str();
  given.plans = &plan;
  given.numPlans = 1;
  given.count = what.count;
  given.dataType = static_cast<occlDataType_t>(what.type);
  given.op = static_cast<occlRedOp_t>(what.op);
  given.timeoutMs = timeoutMs;
  return occlRegister(comm, &given);
}

std::string RankOnDevice::run(const Case &what, const std::function<void()> &meet) {
  const plan::Plan &plan = what.plan;
  std::vector<conformance::Numbers> numbers;
  for (uint32_t r = 0; r < plan.numRanks; ++r)
    numbers.push_back(
        conformance::exactInput(plan.ranks[r].inputChunks / plan.partChunks * what.count, what.type,
                                what.op, what.id * 100 + r));
  std::vector<char> input = conformance::encode(numbers[rank], what.type);
  std::vector<char> expected =
      conformance::encode(conformance::expectedOutput(plan.collective, numbers, rank, plan.root,
                                                      what.count, what.type, what.op),
                          what.type);
  std::string wrong;
  if (registerCase(comm, what) != occlSuccess)
    wrong = std::string("occlRegister: ") + occlGetLastError();
  if (wrong.empty())
    wrong = failed("cudaMemcpyAsync",
                   cudaMemcpyAsync(inputs[what.isRegistered] + what.misalignment, input.data(),
                                   input.size(), cudaMemcpyHostToDevice, work));
  if (wrong.empty())
    wrong = synchronize();
  if (what.way == Way::Graph)
    wrong = wrong.empty() ? runGraph(what, expected, meet) : (meet(), meet(), wrong);
  else if (wrong.empty())
    wrong = runEager(what, expected);
  if (wrong.empty() && occlDeregister(comm, what.id) != occlSuccess)
    wrong = std::string("occlDeregister: ") + occlGetLastError();
  return wrong.empty() ? "" : what.name() + ", rank " + std::to_string(rank) + ": " + wrong;
}

std::vector<Case> casesFor(uint32_t n) {
  using namespace plan::testing;
  std::vector<Case> cases;
  auto add = [&](Case what) {
    what.id = 1000 + cases.size();
    cases.push_back(std::move(what));
  };
  auto withProtocol = [](plan::Plan plan, plan::Protocol protocol) {
    plan.protocol = protocol;
    return plan;
  };
  for (auto protocol : {plan::Protocol::Simple, plan::Protocol::LL, plan::Protocol::LL128})
    for (auto make : {ringAllReduce, oneShotAllReduce, twoShotAllReduce, ringAllGather,
                      ringReduceScatter, allToAll})
      for (uint64_t count : {uint64_t(n), uint64_t(1003) * n})
        add({.plan = withProtocol(make(n), protocol),
             .count = count,
             .misalignment = count == n ? 0u : 4u});
  for (auto protocol : {plan::Protocol::Simple, plan::Protocol::LL128})
    for (auto make : {chainBroadcast, chainReduce})
      add({.plan = withProtocol(make(n, 4, n - 1), protocol), .count = 777});
  for (bool isRegistered : {true, false})
    for (uint64_t count : {1, 4099, 50000})
      add({.plan = directAllReduce(n),
           .count = count,
           .misalignment = count == 1 ? 0u : 12u,
           .isRegistered = isRegistered});
  for (uint32_t type = 0; type < kNumDataTypes; ++type)
    for (uint32_t op = 0; op < kNumReduceOps; ++op)
      for (bool lines : {false, true})
        add({.plan = withProtocol(oneShotAllReduce(n),
                                  lines ? plan::Protocol::LL : plan::Protocol::Simple),
             .count = 131,
             .type = static_cast<DataType>(type),
             .op = static_cast<ReduceOp>(op),
             .misalignment = sizeOf(static_cast<DataType>(type))});
  for (auto protocol : {plan::Protocol::Simple, plan::Protocol::LL})
    add({.plan = withProtocol(twoShotAllReduce(n), protocol), .count = 5000, .way = Way::Graph});
  add({.plan = directAllReduce(n), .count = 5000, .isRegistered = true, .way = Way::Graph});
  return cases;
}

occlConfig_t smallConfig() {
  occlConfig_t config = OCCL_CONFIG_INITIALIZER;
  config.deviceKind = occlDeviceCuda;
  config.arenaBytes = 64 << 20;
  config.heapBytes = 64 << 20;
  config.timeoutMs = 20000;
  return config;
}

} // namespace occl::gpu_test
