#include "test/gpu/harness/device_job.h"

#include "plan/model/chunking_of.h"
#include "plan/model/names.h"
#include "plan/testing/direct_plans.h"
#include "plan/testing/example_plans.h"
#include "runtime/api/testing/harness.h"
#include "runtime/exec/conformance/programs.h"
#include "runtime/exec/conformance/reference.h"
#include "test/gpu/harness/block_plans.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

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
         (isRegistered ? ", registered buffers" : "") + (inPlace ? ", in place" : "") +
         (way == Way::Graph       ? ", in a graph"
          : way == Way::Submitted ? ", submitted"
          : way == Way::Streamed  ? ", submitted on a stream"
                                  : "");
}

RankOnDevice::RankOnDevice(occlComm_t comm, uint32_t rank) : comm(comm), rank(rank) {
  cudaStreamCreateWithFlags(&work, cudaStreamNonBlocking);
  for (char **buffer : {&inputs[0], &outputs[0], &pristine})
    cudaMalloc(reinterpret_cast<void **>(buffer), kBufferBytes);
  for (char **buffer : {&inputs[1], &outputs[1]})
    occlMemAlloc(comm, kBufferBytes, reinterpret_cast<void **>(buffer));
}

RankOnDevice::~RankOnDevice() {
  cudaFree(inputs[0]);
  cudaFree(outputs[0]);
  cudaFree(pristine);
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

std::string RankOnDevice::call(const Case &what) {
  Places places = placesOf(what);
  return callInStream(comm, what, places.input, places.output, work);
}

RankOnDevice::Places RankOnDevice::placesOf(const Case &what) const {
  char *input = inputs[what.isRegistered] + what.misalignment;
  char *begin = outputs[what.isRegistered], *output = begin + what.misalignment;
  if (!what.inPlace)
    return {input, output, begin};
  int32_t chunks = what.plan.ranks[rank].inPlaceOffset;
  uint64_t apart = plan::chunkingOf(what.plan, what.count, sizeOf(what.type))
                       .beginInBuffer(static_cast<uint64_t>(std::abs(chunks))) *
                   sizeOf(what.type);
  return {output + (chunks > 0 ? apart : 0), output + (chunks < 0 ? apart : 0), begin};
}

std::string RankOnDevice::prepare(const Case &what) {
  Places places = placesOf(what);
  std::string wrong =
      failed("cudaMemsetAsync", cudaMemsetAsync(places.begin, kSpoilt, kBufferBytes, work));
  if (wrong.empty())
    wrong = failed("cudaMemcpyAsync", cudaMemcpyAsync(places.input, pristine, inputBytes,
                                                      cudaMemcpyDeviceToDevice, work));
  return wrong;
}

std::string RankOnDevice::check(const Case &what, const std::vector<char> &expected) {
  std::string wrong = synchronize();
  if (!wrong.empty())
    return wrong;
  Places places = placesOf(what);
  auto offset = static_cast<size_t>(places.output - places.begin);
  size_t inputOffset = what.inPlace ? static_cast<size_t>(places.input - places.begin) : 0;
  size_t inputEnd = what.inPlace ? inputOffset + inputBytes : 0;
  std::vector<char> actual(std::max(offset + expected.size(), inputEnd) + kGuardBytes);
  wrong = failed("cudaMemcpyAsync", cudaMemcpyAsync(actual.data(), places.begin, actual.size(),
                                                    cudaMemcpyDeviceToHost, work));
  if (wrong.empty())
    wrong = synchronize();
  const char *failure = occlCommGetLastError(comm);
  if (*failure != 0)
    return failure;
  for (size_t i = 0; i < actual.size() && wrong.empty() && !expected.empty(); ++i) {
    bool isOutput = i >= offset && i < offset + expected.size();
    bool isInput = i >= inputOffset && i < inputEnd;
    if (isOutput ? actual[i] != expected[i - offset] : !isInput && actual[i] != kSpoilt)
      wrong = "byte " + std::to_string(i) + " of the output's buffer is wrong";
  }
  return wrong;
}

std::string RankOnDevice::runEager(const Case &what, const std::vector<char> &expected) {
  std::string wrong;
  for (uint32_t i = 0; i < 6 && wrong.empty(); ++i) {
    wrong = prepare(what);
    if (wrong.empty())
      wrong = call(what);
    if (wrong.empty() && i % 2 == 1) // else the next one follows at once
      wrong = check(what, expected);
  }
  return wrong;
}

/// Out of place three in flight at a time, waited for in another order.
std::string RankOnDevice::runSubmitted(const Case &what, const std::vector<char> &expected) {
  const Places places = placesOf(what);
  std::string wrong;
  for (uint32_t i = 0; i < 2 && wrong.empty(); ++i) {
    wrong = prepare(what);
    if (wrong.empty())
      wrong = synchronize();
    std::vector<occlRequest_t> requests(what.inPlace ? 1 : 3);
    for (occlRequest_t &request : requests)
      if (wrong.empty() && startKnown(comm, what.id, places.input, places.output, nullptr, nullptr,
                                      &request) != occlSuccess)
        wrong = std::string("occlStart: ") + occlGetLastError();
    std::swap(requests.front(), requests.back());
    for (occlRequest_t request : requests)
      if (wrong.empty() && occlWait(comm, request) != occlSuccess)
        wrong = std::string("occlWait: ") + occlGetLastError();
    if (wrong.empty())
      wrong = check(what, expected);
  }
  return wrong;
}

/// Between copies of the stream, which nobody waits for.
std::string RankOnDevice::runStreamed(const Case &what, const std::vector<char> &expected) {
  const Places places = placesOf(what);
  std::string wrong;
  for (uint32_t i = 0; i < 4 && wrong.empty(); ++i) {
    wrong = prepare(what);
    if (wrong.empty() && startInStream(comm, what.id, places.input, places.output, work, nullptr,
                                       nullptr, nullptr) != occlSuccess)
      wrong = std::string("in the stream: ") + occlGetLastError();
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
    wrong = call(what);
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
    wrong = prepare(what);
    if (wrong.empty())
      wrong = failed("replay", cudaGraphLaunch(executable, work));
    if (wrong.empty() && i % 2 == 1)
      wrong = call(what);
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

std::string RankOnDevice::run(const Case &what, const std::function<void()> &meet) {
  const plan::Plan &plan = what.plan;
  std::vector<conformance::Numbers> numbers;
  for (uint32_t r = 0; r < plan.numRanks; ++r)
    numbers.push_back(
        conformance::exactInput(plan.ranks[r].inputChunks / plan.partChunks * what.count, what.type,
                                what.op, what.id * 100 + r));
  if (what.op == ReduceOp::Avg && isFloat(what.type)) // a number of ranks need be no power of two
    for (conformance::Numbers &given : numbers)
      given = conformance::multiplied(given, plan.numRanks, what.type);
  std::vector<char> input = conformance::encode(numbers[rank], what.type);
  std::vector<char> expected =
      conformance::encode(conformance::expectedOutput(plan.collective, numbers, rank, plan.root,
                                                      what.count, what.type, what.op),
                          what.type);
  inputBytes = input.size();
  std::string wrong;
  const bool isStarted = what.way == Way::Submitted || what.way == Way::Streamed;
  if (isStarted)
    remember(comm, what);
  if (wrong.empty())
    wrong = failed("cudaMemcpyAsync", cudaMemcpyAsync(pristine, input.data(), input.size(),
                                                      cudaMemcpyHostToDevice, work));
  if (wrong.empty())
    wrong = synchronize();
  if (what.way == Way::Graph)
    wrong = wrong.empty() ? runGraph(what, expected, meet) : (meet(), meet(), wrong);
  else if (wrong.empty())
    wrong = what.way == Way::Submitted  ? runSubmitted(what, expected)
            : what.way == Way::Streamed ? runStreamed(what, expected)
                                        : runEager(what, expected);
  return wrong.empty() ? "" : what.name() + ", rank " + std::to_string(rank) + ": " + wrong;
}

namespace {

using Make = plan::Plan (*)(uint32_t);

plan::Plan withProtocol(plan::Plan plan, plan::Protocol protocol) {
  plan.protocol = protocol;
  return plan;
}

plan::Plan broadcast(uint32_t n) { return plan::testing::chainBroadcast(n, 4, n - 1); }
plan::Plan reduce(uint32_t n) { return plan::testing::chainReduce(n, 4, n - 1); }

constexpr plan::Protocol kProtocols[] = {plan::Protocol::Simple, plan::Protocol::LL,
                                         plan::Protocol::LL128};

/// Every algorithm with every protocol, of few and of many elements.
std::vector<Case> protocolCases(uint32_t n) {
  using namespace plan::testing;
  std::vector<Case> cases;
  for (plan::Protocol protocol : kProtocols)
    for (Make make : {ringAllReduce, oneShotAllReduce, twoShotAllReduce, ringAllGather,
                      ringReduceScatter, allToAll, Make(broadcast), Make(reduce)})
      for (uint64_t count : {uint64_t(n), uint64_t(1003) * n})
        cases.push_back({.plan = withProtocol(make(n), protocol),
                         .count = count,
                         .misalignment = count == n ? 0u : 4u});
  return cases;
}

/// Of several tiles, whose steps overlap in streams; the last tile is short.
std::vector<Case> chainCases(uint32_t n) {
  std::vector<Case> cases;
  for (const plan::Plan &plan :
       {plan::testing::chainBroadcast(n, 1), plan::testing::chainReduce(n, 1)})
    for (uint64_t misalignment : {0u, 4u})
      for (Way way : {Way::Eager, Way::Graph})
        cases.push_back({.plan = plan, .count = 100'003, .misalignment = misalignment, .way = way});
  return cases;
}

/// Chunks that do not lie side by side: in scratch, in messages of several slices and with elements
/// that are smaller than what a packet holds; and on several tiles.
std::vector<Case> scatteredCases(uint32_t n) {
  std::vector<Case> cases;
  for (plan::Protocol protocol : kProtocols)
    for (DataType type : {DataType::Float32, DataType::Int8, DataType::Float16})
      for (uint64_t count : {uint64_t(3), uint64_t(1003), uint64_t(9001)})
        cases.push_back({.plan = withProtocol(conformance::aggregatedAllReduce(n), protocol),
                         .count = count,
                         .type = type,
                         .misalignment = sizeOf(type)});
  // Tables that are larger than most.
  cases.push_back({.plan = plan::testing::chainBroadcast(n, 40), .count = 40'003});
  for (uint64_t misalignment : {0u, 4u})
    cases.push_back({.plan = chainOfPairs(n), .count = 200'003, .misalignment = misalignment});
  return cases;
}

std::vector<Case> directCases(uint32_t n) {
  using namespace plan::testing;
  std::vector<Case> cases;
  for (Make make : {directAllReduce, directAllGather})
    for (bool inPlace : {false, true})
      for (uint64_t count : {1, 4099, 50001})
        cases.push_back({.plan = make(n),
                         .count = count,
                         .misalignment = count == 1 ? 0u : 12u,
                         .isRegistered = true,
                         .inPlace = inPlace});
  return cases;
}

/// Every type, with every operation where there is something to reduce, of an odd number of
/// elements in buffers that are aligned to one element alone, in and out of place; the protocols
/// by turns.
std::vector<Case> typeCases(uint32_t n) {
  using namespace plan::testing;
  std::vector<Case> cases;
  auto add = [&](Make make, DataType type, ReduceOp op) {
    for (bool inPlace : {false, true}) {
      plan::Plan plan = make(n);
      if (inPlace ? plan.inPlace : plan.outOfPlace)
        cases.push_back({.plan = withProtocol(std::move(plan), kProtocols[cases.size() % 3]),
                         .count = 131 + 128 * (cases.size() % 7),
                         .type = type,
                         .op = op,
                         .misalignment = sizeOf(type),
                         .inPlace = inPlace});
    }
  };
  for (uint32_t t = 0; t < kNumDataTypes; ++t) {
    auto type = static_cast<DataType>(t);
    for (Make make : {ringAllGather, allToAll, Make(broadcast)})
      add(make, type, ReduceOp::Sum);
    for (uint32_t op = 0; op < kNumReduceOps; ++op)
      for (Make make :
           {ringAllReduce, oneShotAllReduce, twoShotAllReduce, ringReduceScatter, Make(reduce)})
        add(make, type, static_cast<ReduceOp>(op));
  }
  return cases;
}

std::vector<Case> graphCases(uint32_t n) {
  using namespace plan::testing;
  std::vector<Case> cases;
  for (auto protocol : {plan::Protocol::Simple, plan::Protocol::LL})
    cases.push_back(
        {.plan = withProtocol(twoShotAllReduce(n), protocol), .count = 5000, .way = Way::Graph});
  cases.push_back(
      {.plan = directAllReduce(n), .count = 5000, .isRegistered = true, .way = Way::Graph});
  return cases;
}

} // namespace

bool areBuffersShared() {
  const char *disabled = std::getenv("OCCL_P2P_DISABLE");
  return (!disabled || std::string(disabled) != "1") && !std::getenv("OCCL_TEST_MACHINES");
}

std::vector<Case> casesFor(uint32_t n) {
  std::vector<Case> all;
  for (const auto &cases :
       {protocolCases(n), chainCases(n), scatteredCases(n), directCases(n), graphCases(n)})
    all.insert(all.end(), cases.begin(), cases.end());
  if (!areBuffersShared())
    std::erase_if(all, [](const Case &what) { return what.isRegistered; }); // direct plans
  for (size_t i = 0; i < all.size(); ++i)
    all[i].id = 1000 + i;
  return all;
}

std::vector<Case> typeCasesFor(uint32_t n) {
  std::vector<Case> cases = typeCases(n);
  for (size_t i = 0; i < cases.size(); ++i)
    cases[i].id = 5000 + i;
  return cases;
}

std::vector<Case> submittedCasesFor(uint32_t n) {
  std::vector<Case> cases = casesFor(n), types = typeCasesFor(n);
  cases.insert(cases.end(), types.begin(), types.end());
  // Connection sets for lines have no scratch.
  const auto needsScratch = [](const plan::Plan &plan) {
    return plan.protocol != plan::Protocol::Simple &&
           std::ranges::any_of(plan.ranks,
                               [](const auto &rank) { return rank.scratchChunks != 0; });
  };
  std::erase_if(
      cases, [&](const Case &what) { return what.way == Way::Graph || needsScratch(what.plan); });
  for (Case &what : cases)
    what.way = Way::Submitted;
  return cases;
}

occlResult_t callCase(occlComm_t comm, const Case &what, const void *input, void *output,
                      cudaStream_t stream, uint32_t timeoutMs) {
  auto handle = handleOf(what.plan);
  occlCall_t call = OCCL_CALL_INITIALIZER;
  call.plan = handle.get();
  call.sendBuffer = input;
  call.recvBuffer = output;
  call.count = what.count;
  call.dataType = static_cast<occlDataType_t>(what.type);
  call.op = static_cast<occlRedOp_t>(what.op);
  call.timeoutMs = timeoutMs;
  return occlCall(comm, &call, stream);
}

std::string callInStream(occlComm_t comm, const Case &what, const void *input, void *output,
                         cudaStream_t stream, uint32_t timeoutMs) {
  return callCase(comm, what, input, output, stream, timeoutMs) == occlSuccess
             ? ""
             : std::string("occlCall: ") + occlGetLastError();
}

namespace {

struct Known {
  std::shared_ptr<occlPlan> plan;
  occlCall_t call;
};
std::mutex knownMutex;
std::map<std::pair<occlComm_t, uint64_t>, Known> known;

} // namespace

void remember(occlComm_t comm, const Case &what, uint32_t timeoutMs) {
  Known entry = {handleOf(what.plan), OCCL_CALL_INITIALIZER};
  entry.call.plan = entry.plan.get();
  entry.call.count = what.count;
  entry.call.dataType = static_cast<occlDataType_t>(what.type);
  entry.call.op = static_cast<occlRedOp_t>(what.op);
  entry.call.id = what.id;
  entry.call.timeoutMs = timeoutMs;
  std::lock_guard lock(knownMutex);
  known.insert_or_assign({comm, what.id}, entry);
}

occlResult_t startKnown(occlComm_t comm, uint64_t id, const void *input, void *output,
                        occlCallback_t callback, void *user, occlRequest_t *request,
                        const cudaStream_t *after) {
  occlCall_t call;
  {
    std::lock_guard lock(knownMutex);
    call = known.at({comm, id}).call;
  }
  call.sendBuffer = input;
  call.recvBuffer = output;
  call.after = after;
  return occlStart(comm, &call, callback, user, request);
}

occlResult_t runKnown(occlComm_t comm, uint64_t id, const void *input, void *output) {
  occlRequest_t request = 0;
  occlResult_t started = startKnown(comm, id, input, output, nullptr, nullptr, &request);
  return started == occlSuccess ? occlWait(comm, request) : started;
}

occlResult_t startInStream(occlComm_t comm, uint64_t id, const void *input, void *output,
                           cudaStream_t stream, occlCallback_t callback, void *user,
                           occlRequest_t *request) {
  occlRequest_t own = 0;
  occlRequest_t *const place = request ? request : &own;
  occlResult_t started = startKnown(comm, id, input, output, callback, user, place, &stream);
  return started == occlSuccess ? occlStreamWait(comm, *place, stream) : started;
}

std::string runAllReduces(RankOnDevice &onDevice, uint32_t numRanks) {
  uint64_t id = 1;
  for (const plan::Plan &plan :
       {plan::testing::ringAllReduce(numRanks), plan::testing::directAllReduce(numRanks)}) {
    Case what;
    what.isRegistered = id == 2;
    what.id = id++;
    what.plan = plan;
    what.count = 1001;
    if (what.isRegistered && !areBuffersShared())
      continue;
    if (std::string wrong = onDevice.run(what, [] {}); !wrong.empty())
      return wrong;
  }
  return "";
}

occlConfig_t smallConfig() {
  occlConfig_t config = OCCL_CONFIG_INITIALIZER;
  config.deviceKind = occlDeviceCuda;
  config.arenaBytes = 64 << 20;
  config.heapBytes = 64 << 20;
  config.timeoutMs = 20000;
  config.asNeeded = std::getenv("OCCL_TEST_AS_NEEDED") ? 1 : 0;
  return config;
}

} // namespace occl::gpu_test
