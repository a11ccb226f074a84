#include "bench/gpu/processes/measured.h"

#include "bench/gpu/timing.h"
#include "runtime/api/capi/handles.h"
#include "runtime/api/occl.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace occl::bench {

namespace {

/// Calls before those that are timed.
constexpr uint32_t kWarmUps = 5;
/// Of more elements every so many are verified.
constexpr size_t kAllVerified = 4 << 20, kSampled = 61;

void requireOccl(occlResult_t result, const char *what) {
  if (result == occlSuccess)
    return;
  std::fprintf(stderr, "%s: %s\n", what, occlGetLastError());
  std::exit(1);
}

/// Element i of rank r's input. Sums of eight are exact, in 8 bits of a mantissa, too.
float inputOf(uint32_t r, size_t i) { return static_cast<float>((i * 7 + r * 13) % 31); }

/// The upper half of a float whose lower one is zero.
uint16_t toBfloat16(float value) {
  return static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16);
}
float fromBfloat16(uint16_t value) { return std::bit_cast<float>(uint32_t{value} << 16); }

void store(char *to, Type type, size_t i, float value) {
  if (type == Type::Float32)
    reinterpret_cast<float *>(to)[i] = value;
  else
    reinterpret_cast<uint16_t *>(to)[i] = toBfloat16(value);
}
float load(const char *from, Type type, size_t i) {
  return type == Type::Float32 ? reinterpret_cast<const float *>(from)[i]
                               : fromBfloat16(reinterpret_cast<const uint16_t *>(from)[i]);
}

float outputOf(const plan::Goal &goal, uint32_t numRanks) {
  if (!goal.ofAllRanks)
    return inputOf(goal.rank, goal.index);
  float sum = 0;
  for (uint32_t from = 0; from < numRanks; ++from)
    sum += inputOf(from, goal.index);
  return sum;
}

uint32_t repetitionsFor(size_t bytes) {
  return bytes <= 1 << 20 ? 200 : bytes <= 16 << 20 ? 50 : 10;
}

} // namespace

void require(int error, const char *what) {
  if (error == cudaSuccess)
    return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(static_cast<cudaError_t>(error)));
  std::exit(1);
}

std::string cell(double microseconds) {
  if (microseconds == 0)
    return " - |";
  char text[32];
  std::snprintf(text, sizeof text, microseconds < 100 ? " %.1f |" : " %.0f |", microseconds);
  return text;
}

void standOnOwnMachine(uint32_t rank) {
  const std::string host = "machine" + std::to_string(rank);
  for (const char *variable : {"OCCL_HOSTID", "NCCL_HOSTID"})
    setenv(variable, host.c_str(), 1);
  setenv("NCCL_NET", "Socket", 1);
  setenv("NCCL_SOCKET_IFNAME", "lo", 1);
}

double timeInStream(Together &together, uint32_t rank, cudaStream_t stream, uint32_t before,
                    uint32_t repetitions, const std::function<void()> &enqueue) {
  cudaEvent_t begin, end;
  require(cudaEventCreate(&begin), "cudaEventCreate");
  require(cudaEventCreate(&end), "cudaEventCreate");
  for (uint32_t i = 0; i < before; ++i)
    enqueue();
  require(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  together.meet();
  require(cudaEventRecord(begin, stream), "cudaEventRecord");
  for (uint32_t i = 0; i < repetitions; ++i)
    enqueue();
  require(cudaEventRecord(end, stream), "cudaEventRecord");
  require(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  float milliseconds = 0;
  require(cudaEventElapsedTime(&milliseconds, begin, end), "cudaEventElapsedTime");
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  return together.largest(milliseconds * 1e3 / repetitions, rank);
}

double timeInGraph(Together &together, uint32_t rank, cudaStream_t stream, uint32_t before,
                   uint32_t replays, const std::function<void()> &enqueue) {
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  require(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capture");
  for (uint32_t i = 0; i < kInGraph; ++i)
    enqueue();
  require(cudaStreamEndCapture(stream, &graph), "end of capture");
  require(cudaGraphInstantiate(&executable, graph, 0), "cudaGraphInstantiate");
  const double time = timeInStream(together, rank, stream, before, replays, [&] {
    require(cudaGraphLaunch(executable, stream), "cudaGraphLaunch");
  });
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(graph);
  return time / kInGraph;
}

std::unique_ptr<Occl> Occl::join(Together &together, uint32_t rank, const std::string &collective,
                                 const std::vector<std::string> &files, bool asUsual,
                                 uint32_t daemonBlocks) {
  auto joined = std::make_unique<Occl>();
  joined->together = &together;
  joined->rank = rank;
  require(cudaSetDevice(static_cast<int>(rank)), "cudaSetDevice");
  joined->measured = plan::standardCollectiveOf(collective).value_or(Kind::AllReduce);
  for (const std::string &file : files) {
    occlPlan_t plan = nullptr;
    requireOccl(occlPlanLoad(file.c_str(), &plan), "occlPlanLoad");
    joined->plans.push_back(plan);
  }
  if (rank == 0) {
    const auto number =
        static_cast<int>(std::chrono::steady_clock::now().time_since_epoch().count() & 0xffffff);
    if (std::getenv("OCCL_HOSTID"))
      std::snprintf(together.note(), Together::kNoteBytes, "127.0.0.1:%d/secret of this bench",
                    20000 + number % 10000);
    else
      std::snprintf(together.note(), Together::kNoteBytes, "gpu-collectives-%d", number);
  }
  together.meet();
  std::string name = together.note();
  together.meet();
  occlConfig_t config = OCCL_CONFIG_INITIALIZER;
  config.deviceKind = occlDeviceCuda;
  config.device = rank;
  if (asUsual) {
    // As a communicator of libnccl.so.2 has it.
    config.heapBytes = 1 << 20;
    if (together.size() <= 4)
      config.arenaBytes = 128 << 20;
  } else {
    // Two buffers of 1 GiB, and what is registered for the daemon.
    config.arenaBytes = 6ull << 30;
    config.streams = 1;
  }
  config.workers = daemonBlocks;
  if (const char *mebibytes = std::getenv("OCCL_BENCH_ARENA_MIB"))
    config.arenaBytes = std::strtoull(mebibytes, nullptr, 10) << 20;
  requireOccl(occlCommInitRank(&joined->comm, together.size(), rank, name.c_str(), &config),
              "occlCommInitRank");
  return joined;
}

Occl::~Occl() {
  occlCommDestroy(comm);
  for (occlPlan_t plan : plans)
    occlPlanDestroy(plan);
}

void *Occl::allocate(size_t bytes) {
  void *memory = nullptr;
  requireOccl(occlMemAlloc(comm, bytes, &memory), "occlMemAlloc");
  return memory;
}

occlCall_t Occl::callOfKind(size_t count, Type type) const {
  occlCall_t call = OCCL_CALL_INITIALIZER;
  call.kind = static_cast<occlKind_t>(occlKindAllReduce + static_cast<int>(measured));
  call.dataType = type == Type::Float32 ? occlFloat32 : occlBfloat16;
  call.count = count;
  call.timeoutMs = 10000;
  return call;
}

std::optional<occlCall_t> Occl::callWith(size_t count, size_t firstPlan, size_t numPlans,
                                         Type type) const {
  const uint64_t bytes = count * sizeOf(type);
  for (size_t p = firstPlan; p < firstPlan + numPlans; ++p) {
    const plan::Plan &plan = *plans[p]->plan;
    if (bytes < plan.minBytes || bytes > plan.maxBytes)
      continue;
    occlCall_t call = callOfKind(count, type);
    call.kind = occlKindPlan;
    call.plan = plans[p];
    return call;
  }
  return std::nullopt;
}

/// In a graph that nobody launches: a rank with more thread blocks than others may be the only one
/// that it does not fit.
bool Occl::fits(occlCall_t call, const void *input, void *output, cudaStream_t stream) {
  call.sendBuffer = input;
  call.recvBuffer = output;
  cudaGraph_t graph = nullptr;
  require(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capture");
  const occlResult_t result = occlCall(comm, &call, stream);
  require(cudaStreamEndCapture(stream, &graph), "end of capture");
  cudaGraphDestroy(graph);
  const bool isUnfit = result == occlInvalidArgument || result == occlAgain;
  if (!isUnfit)
    requireOccl(result, "occlCall");
  return together->largest(isUnfit, rank) == 0;
}

void Occl::enqueue(occlCall_t call, const void *input, void *output, cudaStream_t stream) {
  call.sendBuffer = input;
  call.recvBuffer = output;
  requireOccl(occlCall(comm, &call, stream), "occlCall");
}

uint64_t Occl::start(uint64_t id, occlCall_t call, const void *input, void *output) {
  call.id = id;
  call.sendBuffer = input;
  call.recvBuffer = output;
  occlRequest_t request = 0;
  requireOccl(occlStart(comm, &call, nullptr, nullptr, &request), "occlStart");
  return request;
}

void Occl::wait(uint64_t request) { requireOccl(occlWait(comm, request), "occlWait"); }

Stage::Stage(Together &together, uint32_t rank, Occl &ours, Nccl *nccl, size_t maxBytes,
             const Given &given)
    : together(together), rank(rank), ours(ours), nccl(nccl), given(given), data(maxBytes) {
  for (size_t i = 0; i < maxBytes / sizeOf(given.type); ++i)
    store(data.data(), given.type, i, inputOf(rank, i));
  require(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
  auto pair = [&](const auto &allocate) {
    auto *input = static_cast<char *>(allocate());
    return Buffers{input, given.inPlace ? input : static_cast<char *>(allocate())};
  };
  if (given.isOrdinary) {
    own = plain = pair([&] {
      void *memory = nullptr;
      require(cudaMalloc(&memory, maxBytes), "cudaMalloc");
      return memory;
    });
    return;
  }
  own = pair([&] { return ours.allocate(maxBytes); });
  if (nccl == nullptr)
    return;
  plain = pair([&] { return nccl->allocate(maxBytes, false); });
  symmetric = pair([&] { return nccl->allocate(maxBytes, true); });
}

Stage::Buffers Stage::placed(const Buffers &buffers, size_t count) const {
  Buffers result = buffers;
  const int64_t offset = inPlaceOffset(ours.kind(), partsOf(count * sizeOf(given.type)), rank);
  if (given.inPlace)
    (offset > 0 ? result.input : result.output) += std::abs(offset);
  return result;
}

bool Stage::fits(const occlCall_t &call, size_t count) {
  const Buffers buffers = placed(own, count);
  return ours.fits(call, buffers.input, buffers.output, stream);
}

std::optional<occlCall_t> Stage::callFor(size_t count) const {
  return ours.numPlans() == 0 ? ours.callOfKind(count, given.type)
                              : ours.callWith(count, 0, ours.numPlans(), given.type);
}

Stage::Enqueue Stage::theirs(size_t count) const {
  return [this, count](const void *in, void *out) {
    nccl->enqueue(ours.kind(), in, out, count, stream, given.type);
  };
}

size_t Stage::countFor(size_t bytes) const {
  return bytes / sizeOf(given.type) / (hasManyParts(ours.kind()) ? together.size() : 1);
}

void Stage::synchronize() { require(cudaStreamSynchronize(stream), "cudaStreamSynchronize"); }

void Stage::verify(const Buffers &buffers, size_t count, const Enqueue &enqueue, const char *what) {
  const Kind kind = ours.kind();
  const plan::Parts parts = partsOf(count);
  const size_t inputs = inputSize(kind, parts), outputs = outputSize(kind, parts);
  auto bytes = [this](size_t elements) { return elements * sizeOf(given.type); };
  auto host = std::make_unique_for_overwrite<char[]>(bytes(outputs));
  require(cudaMemsetAsync(buffers.output, 0x7f, bytes(outputs), stream), "clearing");
  require(cudaMemcpyAsync(buffers.input, data.data(), bytes(inputs), cudaMemcpyDefault, stream),
          "copying");
  synchronize();
  together.meet();
  enqueue(buffers.input, buffers.output);
  require(cudaMemcpyAsync(host.get(), buffers.output, bytes(outputs), cudaMemcpyDefault, stream),
          "copying");
  synchronize();
  if (!needsOutput(kind, parts, rank))
    return;
  size_t stride = outputs > kAllVerified ? kSampled : 1;
  for (size_t i = 0; i < outputs; i += stride) {
    const float actual = load(host.get(), given.type, i),
                expected = outputOf(*goalOf(kind, parts, rank, i), together.size());
    if (actual == expected)
      continue;
    std::fprintf(stderr, "%s: element %zu of rank %u is %g, not %g\n", what, i, rank,
                 double(actual), double(expected));
    std::exit(1);
  }
}

double Stage::blocking(uint32_t repetitions, const std::function<void()> &enqueue) {
  std::vector<double> times;
  together.meet();
  for (uint32_t i = 0; i < repetitions; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    enqueue();
    synchronize();
    times.push_back(microsecondsSince(begin));
  }
  return together.largest(medianOf(std::move(times)), rank);
}

Times Stage::measure(const Buffers &buffers, size_t count, const Enqueue &enqueue, bool graphOnly) {
  uint32_t repetitions = repetitionsFor(count * sizeOf(given.type));
  auto one = [&] { enqueue(buffers.input, buffers.output); };
  Times times;
  times.graph =
      timeInGraph(together, rank, stream, kWarmUps, std::max(repetitions / kInGraph, 2u), one);
  if (graphOnly)
    return times;
  times.stream = timeInStream(together, rank, stream, kWarmUps, repetitions, one);
  times.blocking = blocking(repetitions, one);
  return times;
}

std::vector<Times> Stage::compared(size_t bytes) {
  size_t count = countFor(bytes);
  std::vector<Times> all;
  const auto call = callFor(count);
  auto run = [&](const Buffers &at, const Enqueue &enqueue, const char *what) {
    Buffers buffers = placed(at, count);
    verify(buffers, count, enqueue, what);
    all.push_back(measure(buffers, count, enqueue, false));
  };
  if (call && fits(*call, count))
    run(
        own, [&](const void *in, void *out) { ours.enqueue(*call, in, out, stream); }, "OCCL");
  else
    all.emplace_back();
  if (nccl == nullptr)
    return all;
  run(plain, theirs(count), "NCCL");
  if (given.isOrdinary)
    all.emplace_back(); // symmetric memory is not ordinary
  else
    run(symmetric, theirs(count), "NCCL, symmetric");
  const Times &us = all[0], &normal = all[1];
  Times &last = all[2];
  auto ratio = [](double theirTime, double ourTime) {
    char text[32];
    std::snprintf(text, sizeof text, " %.2f |", ourTime == 0 ? 0 : theirTime / ourTime);
    return std::string(text);
  };
  const auto faster = [](double a, double b) { return b == 0 ? a : std::min(a, b); };
  last.extra = ratio(faster(normal.stream, last.stream), us.stream) +
               ratio(faster(normal.graph, last.graph), us.graph) +
               ratio(faster(normal.blocking, last.blocking), us.blocking);
  return all;
}

Times Stage::started(const occlCall_t &call, size_t count) {
  const Enqueue run = [&](const void *in, void *out) { ours.wait(ours.start(1, call, in, out)); };
  const Buffers buffers = placed(own, count);
  verify(buffers, count, run, "OCCL, started");
  const auto repetitions = repetitionsFor(count * sizeOf(given.type));
  together.meet();
  const auto begin = std::chrono::steady_clock::now();
  for (uint32_t i = 0; i < repetitions; ++i)
    run(buffers.input, buffers.output);
  Times times;
  times.graph = together.largest(microsecondsSince(begin) / repetitions, rank);
  return times;
}

std::vector<Times> Stage::eachPlan(size_t bytes) {
  size_t count = countFor(bytes);
  std::vector<Times> all;
  if (given.isStarted)
    all.push_back(started(ours.callOfKind(count, given.type), count));
  for (size_t plan = 0; plan < ours.numPlans(); ++plan) {
    const auto call = ours.callWith(count, plan, 1, given.type);
    if (call && given.isStarted) {
      all.push_back(started(*call, count));
      continue;
    }
    if (!call || !fits(*call, count)) {
      all.emplace_back();
      continue;
    }
    Enqueue enqueue = [&](const void *in, void *out) { ours.enqueue(*call, in, out, stream); };
    Buffers buffers = placed(own, count);
    verify(buffers, count, enqueue, "OCCL");
    all.push_back(measure(buffers, count, enqueue, true));
  }
  if (nccl == nullptr)
    return all;
  for (const Buffers &at : {plain, symmetric}) {
    if (!at.output) { // symmetric memory is not ordinary
      all.emplace_back();
      continue;
    }
    Buffers buffers = placed(at, count);
    verify(buffers, count, theirs(count), "NCCL");
    all.push_back(measure(buffers, count, theirs(count), true));
  }
  return all;
}

} // namespace occl::bench
