// Pre-multiplied sums, averages whose inputs are divided, and calls in place that read a copy of
// their input, on devices. Ranks are threads, on as many devices as there are. Skipped where there
// is no device.
#include "plan/testing/direct_plans.h"
#include "plan/testing/example_plans.h"
#include "runtime/api/testing/harness.h"
#include "runtime/exec/conformance/reference.h"
#include "support/testing/seed.h"
#include "test/gpu/harness/block_plans.h"
#include "test/gpu/harness/captured_graph.h"
#include "test/gpu/harness/ranks_on_devices.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <cstdio>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace occl::gpu_test {
namespace {

namespace conformance = interpreter::conformance;

std::string failed(const char *what) { return std::string(what) + ": " + occlGetLastError(); }

/// Where the scalar of a call is.
enum class Scalar { None, OnHost, OnDevice };

struct Shape {
  occlKind_t kind = occlKindAllReduce;
  uint64_t count = 0;
  DataType type = DataType::Float32;
  ReduceOp op = ReduceOp::Sum;
  Scalar scalar = Scalar::None;
  const plan::Plan *plan = nullptr; // with occlKindPlan
  bool inPlace = false;             // of all-reduces and all-to-alls
  bool inHeap = false;              // buffers are of occlMemAlloc
  uint64_t id = 0;
};

/// By which rank `rank` multiplies: results are exact in the type.
double factorOf(uint32_t rank, DataType type) {
  return sizeOf(type) == 1 && isFloat(type) ? 1 + (rank + 1) % 2 : 2 + rank % 2;
}

/// One call on all ranks, with buffers and what is expected of each.
class Job {
public:
  Job(const Shape &shape, const std::vector<occlComm_t> &comms, uint32_t devices) : shape(shape) {
    const auto n = static_cast<uint32_t>(comms.size());
    if (shape.plan)
      plan = communicator::testing::handleOf(*shape.plan);
    const bool isExchange = shape.kind == occlKindAllToAll;
    const bool isSplit = isExchange || shape.kind == occlKindReduceScatter;
    const char *name = isExchange                     ? "alltoall"
                       : isSplit                      ? "reducescatter"
                       : shape.kind == occlKindReduce ? "reduce"
                                                      : "allreduce";
    outputBytes = (isExchange ? n : 1) * shape.count * sizeOf(shape.type);
    std::vector<conformance::Numbers> given, scaled;
    for (uint32_t r = 0; r < n; ++r) {
      given.push_back(conformance::exactInput((isSplit ? n : 1) * shape.count, shape.type,
                                              ReduceOp::Sum, shape.id * 100 + r));
      if (shape.op == ReduceOp::Avg)
        given.back() = conformance::multiplied(given.back(), n, shape.type);
      scaled.push_back(
          shape.scalar == Scalar::None
              ? given.back()
              : conformance::multiplied(given.back(), factorOf(r, shape.type), shape.type));
    }
    for (uint32_t r = 0; r < n; ++r) {
      cudaSetDevice(static_cast<int>(r % devices));
      originals.push_back(conformance::encode(given[r], shape.type));
      expected.push_back(conformance::encode(
          conformance::expectedOutput(name, scaled, r, 0, shape.count, shape.type, shape.op),
          shape.type));
      factors.push_back(encoded(factorOf(r, shape.type)));
      inputs.push_back(allocate(comms[r], originals[r].size()));
      outputs.push_back(allocate(comms[r], outputBytes));
      onDevice.push_back(std::make_unique<DeviceBuffer>(16));
      cudaMemcpy(factorAt(r), factors[r].data(), factors[r].size(), cudaMemcpyHostToDevice);
      prepare(r, nullptr);
      cudaDeviceSynchronize();
    }
  }

  /// Of the type.
  std::vector<char> encoded(double number) const {
    conformance::Numbers one;
    (isFloat(shape.type) ? one.floats.push_back(number)
                         : one.integers.push_back(static_cast<int64_t>(number)));
    return conformance::encode(one, shape.type);
  }
  /// At any alignment.
  char *factorAt(uint32_t rank) const { return onDevice[rank]->get() + shape.id % 8; }
  /// As before the call.
  void prepare(uint32_t rank, cudaStream_t stream) const {
    cudaMemcpyAsync(inputs[rank], originals[rank].data(), originals[rank].size(),
                    cudaMemcpyHostToDevice, stream);
    cudaMemsetAsync(outputs[rank], 0x5a, outputBytes, stream);
  }
  occlCall_t on(uint32_t rank) const {
    occlCall_t call = OCCL_CALL_INITIALIZER;
    call.kind = shape.plan ? occlKindPlan : shape.kind;
    call.plan = plan.get();
    call.sendBuffer = inputs[rank];
    call.recvBuffer = (shape.inPlace ? inputs : outputs)[rank];
    call.count = shape.count;
    call.dataType = static_cast<occlDataType_t>(shape.type);
    call.op = static_cast<occlRedOp_t>(shape.op);
    call.id = shape.id;
    if (shape.scalar == Scalar::OnHost)
      call.scalar = factors[rank].data();
    if (shape.scalar == Scalar::OnDevice)
      call.deviceScalar = factorAt(rank);
    return call;
  }
  std::string check(uint32_t rank, cudaStream_t stream) const {
    return check(rank, stream, expected[rank]);
  }
  std::string check(uint32_t rank, cudaStream_t stream, const std::vector<char> &want) const {
    if (cudaStreamSynchronize(stream) != cudaSuccess)
      return "the stream fails";
    const auto differs = [&](const char *memory, const std::vector<char> &of) {
      std::vector<char> got(of.size());
      cudaMemcpyAsync(got.data(), memory, got.size(), cudaMemcpyDeviceToHost, stream);
      cudaStreamSynchronize(stream);
      return std::mismatch(of.begin(), of.end(), got.begin()).first - of.begin();
    };
    const auto wrong = differs((shape.inPlace ? inputs : outputs)[rank], want);
    if (static_cast<size_t>(wrong) != want.size())
      return name() + ", rank " + std::to_string(rank) + ": wrong from byte " +
             std::to_string(wrong) + " of " + std::to_string(want.size());
    if (!shape.inPlace &&
        static_cast<size_t>(differs(inputs[rank], originals[rank])) != originals[rank].size())
      return name() + ", rank " + std::to_string(rank) + ": the input was written";
    return "";
  }
  std::string name() const {
    return "kind " + std::to_string(shape.kind) + (shape.plan ? " " + shape.plan->name : "") +
           ", " + std::to_string(shape.count) + " " + nameOf(shape.type) + ", " + nameOf(shape.op) +
           ", scalar " + std::to_string(static_cast<int>(shape.scalar)) +
           (shape.inPlace ? ", in place" : "");
  }

  const Shape shape;
  std::vector<std::vector<char>> originals, expected, factors;

private:
  /// Memory of occlMemAlloc is the communicator's until it ends.
  char *allocate(occlComm_t comm, uint64_t bytes) {
    void *memory = nullptr;
    if (shape.inHeap) {
      EXPECT_EQ(occlMemAlloc(comm, bytes, &memory), occlSuccess) << occlGetLastError();
      return static_cast<char *>(memory);
    }
    buffers.push_back(std::make_unique<DeviceBuffer>(bytes));
    return buffers.back()->get();
  }

  std::shared_ptr<occlPlan> plan;
  uint64_t outputBytes = 0;
  std::vector<char *> inputs, outputs; // by rank
  std::vector<std::unique_ptr<DeviceBuffer>> buffers, onDevice;
};

class Scaled : public RanksOnDevices {
protected:
  void SetUp() override {
    RanksOnDevices::SetUp();
    if (IsSkipped())
      return;
    seed = static_cast<uint32_t>(printedSeed());
    occlConfig_t config = smallConfig();
    config.arenaBytes = uint64_t{256 << 20} * numRanks(); // of a kind 36 calls follow streams
    start(numRanks(), config);
  }

  void add(Shape shape) {
    shape.id = jobs.size();
    jobs.push_back(std::make_unique<Job>(shape, comms, devices));
  }
  /// Of every type: each kind that reduces, few elements and many.
  void addAllTypes() {
    for (uint32_t type = 0; type < kNumDataTypes; ++type)
      for (const Scalar scalar : {Scalar::OnHost, Scalar::OnDevice})
        for (const uint64_t count : {uint64_t{1}, uint64_t{1003}, uint64_t{150'001}})
          add({.kind = jobs.size() % 3 == 0   ? occlKindReduceScatter
                       : jobs.size() % 3 == 1 ? occlKindAllReduce
                                              : occlKindReduce,
               .count = count,
               .type = static_cast<DataType>(type),
               .scalar = scalar});
  }
  /// Of every type, few elements and many.
  void addAllToAllsInPlace() {
    for (uint32_t type = 0; type < kNumDataTypes; ++type)
      for (const uint64_t count : {uint64_t{1}, uint64_t{1003}, uint64_t{70'001}})
        add({.kind = occlKindAllToAll,
             .count = count,
             .type = static_cast<DataType>(type),
             .inPlace = true});
  }
  /// All calls, one behind the other in the rank's stream, then the results. The first call of a
  /// shape takes memory, for which CUDA may wait for other ranks of the process on the device: so
  /// before, each is called once with no other one under way.
  void callAll() {
    std::barrier<> meet(n());
    inThreads([&](uint32_t rank) -> std::string {
      std::string wrong;
      for (const auto &job : jobs) {
        const occlCall_t call = job->on(rank);
        meet.arrive_and_wait();
        if (wrong.empty() && occlCall(comms[rank], &call, streamOf(rank)) != occlSuccess)
          wrong = job->name() + ", first: " + failed("occlCall");
        cudaStreamSynchronize(streamOf(rank));
        job->prepare(rank, streamOf(rank));
        cudaStreamSynchronize(streamOf(rank));
      }
      meet.arrive_and_wait();
      if (!wrong.empty())
        return wrong;
      for (const auto &job : jobs)
        if (const occlCall_t call = job->on(rank);
            occlCall(comms[rank], &call, streamOf(rank)) != occlSuccess)
          return job->name() + ": " + failed("occlCall");
      for (const auto &job : jobs)
        if (std::string wrong = job->check(rank, streamOf(rank)); !wrong.empty())
          return wrong;
      return "";
    });
  }

  /// By several ids in orders of each rank's own, every second one in the order of the stream.
  void startAll() {
    std::barrier<> meet(n()); // see callAll()
    inThreads([&](uint32_t rank) -> std::string {
      for (const auto &job : jobs) {
        const occlCall_t call = job->on(rank);
        occlRequest_t request = 0;
        meet.arrive_and_wait();
        if (occlStart(comms[rank], &call, nullptr, nullptr, &request) != occlSuccess ||
            occlWait(comms[rank], request) != occlSuccess)
          std::fprintf(stderr, "%s, first: %s\n", job->name().c_str(), occlGetLastError());
        job->prepare(rank, streamOf(rank));
        cudaStreamSynchronize(streamOf(rank));
      }
      meet.arrive_and_wait();
      return startShuffled(rank);
    });
  }
  std::string startShuffled(uint32_t rank) {
    std::mt19937 random(seed + rank);
    std::vector<size_t> order(jobs.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::shuffle(order, random);
    std::vector<occlRequest_t> requests(jobs.size());
    for (size_t i : order) {
      occlCall_t call = jobs[i]->on(rank);
      const cudaStream_t stream = streamOf(rank);
      call.after = i % 2 == 0 ? &stream : nullptr;
      occlResult_t result = occlAgain;
      while (result == occlAgain) // memory for inputs is given back by calls that end
        result = occlStart(comms[rank], &call, nullptr, nullptr, &requests[i]);
      if (result != occlSuccess)
        return jobs[i]->name() + ": " + failed("occlStart");
    }
    for (size_t i : order) {
      if (occlWait(comms[rank], requests[i]) != occlSuccess)
        return failed("occlWait");
      if (std::string wrong = jobs[i]->check(rank, streamOf(rank)); !wrong.empty())
        return wrong;
    }
    return "";
  }
  /// The call in a graph.
  std::string capture(uint32_t rank, const Job &job, CapturedGraph &captured) const {
    return captured.capture(streamOf(rank), [&]() -> std::string {
      const occlCall_t call = job.on(rank);
      return occlCall(comms[rank], &call, streamOf(rank)) == occlSuccess ? "" : failed("occlCall");
    });
  }

  uint32_t seed = 0;
  std::vector<std::unique_ptr<Job>> jobs;
};

TEST_F(Scaled, EveryTypeInAStream) {
  addAllTypes();
  callAll();
}

TEST_F(Scaled, InPlaceAndOfSizesThatGrow) {
  for (uint64_t count = 5; count < 3'000'000; count *= 7)
    for (const bool inPlace : {true, false})
      add({.count = count,
           .type = DataType::Bfloat16,
           .scalar = inPlace ? Scalar::OnDevice : Scalar::OnHost,
           .inPlace = inPlace});
  callAll();
}

/// Each in a stream of two, which do not wait for each other but by the calls.
TEST_F(Scaled, InSeveralStreams) {
  for (uint64_t i = 0; i < 40; ++i)
    add({.count = 1 + i * i * 50,
         .scalar = i % 3 == 0   ? Scalar::None
                   : i % 3 == 1 ? Scalar::OnHost
                                : Scalar::OnDevice});
  inThreads([&](uint32_t rank) -> std::string {
    cudaStream_t streams[2] = {streamOf(rank), nullptr};
    cudaStreamCreateWithFlags(&streams[1], cudaStreamNonBlocking);
    for (size_t i = 0; i < jobs.size(); ++i)
      if (const occlCall_t call = jobs[i]->on(rank);
          occlCall(comms[rank], &call, streams[(i / 2 + rank) % 2]) != occlSuccess)
        return failed("occlCall");
    std::string wrong;
    for (size_t i = 0; i < jobs.size() && wrong.empty(); ++i)
      wrong = jobs[i]->check(rank, streams[(i / 2 + rank) % 2]);
    cudaStreamDestroy(streams[1]);
    return wrong;
  });
}

TEST_F(Scaled, InEachProtocolAndWithDirectAccess) {
  const std::vector<plan::Plan> plans = {
      plan::testing::ringAllReduce(std::max(n(), 2u)), // with partial sums
      oneShotInBlocks(n(), 4, plan::Protocol::LL), oneShotInBlocks(n(), 4, plan::Protocol::LL128),
      oneShotInBlocks(n(), 4, plan::Protocol::Simple), directInBlocks(n(), 4)};
  for (const plan::Plan &plan : plans)
    for (const Scalar scalar : {Scalar::OnHost, Scalar::OnDevice})
      if (plan.numRanks == n())
        add({.count = 5000, .scalar = scalar, .plan = &plan, .inHeap = true});
  callAll();
}

TEST_F(Scaled, StartedInConflictingOrders) {
  addAllTypes();
  startAll();
}

TEST_F(Scaled, AllToAllsInPlaceInAStream) {
  addAllToAllsInPlace();
  for (uint64_t count = 5; count < 500'000; count *= 7)
    add({.kind = occlKindAllToAll, .count = count, .inPlace = true});
  callAll();
}

TEST_F(Scaled, AllToAllsInPlaceStartedInConflictingOrders) {
  addAllToAllsInPlace();
  startAll();
}

/// Each replay copies what lies there then.
TEST_F(Scaled, AllToAllsInPlaceAreReplayed) {
  for (uint64_t count : {3, 1003, 70'001})
    add({.kind = occlKindAllToAll, .count = count, .inPlace = true});
  std::barrier<> meet(n()); // making and destroying graphs may wait for what runs
  inThreads([&](uint32_t rank) -> std::string {
    std::string wrong;
    for (const auto &job : jobs) {
      CapturedGraph replayed;
      std::string failure = capture(rank, *job, replayed);
      meet.arrive_and_wait();
      for (uint32_t times = 0; times < 5 && failure.empty(); ++times) {
        job->prepare(rank, streamOf(rank));
        failure = replayed.replay(streamOf(rank));
        if (failure.empty())
          failure = job->check(rank, streamOf(rank));
      }
      meet.arrive_and_wait();
      wrong += failure;
    }
    return wrong;
  });
}

/// Without a copy the results would be wrong.
TEST_F(Scaled, InPlaceByPlansForTwoBuffers) {
  std::vector<plan::Plan> plans = {plan::testing::directInTurn(n())};
  for (const plan::Protocol protocol :
       {plan::Protocol::LL, plan::Protocol::LL128, plan::Protocol::Simple}) {
    plans.push_back(plan::testing::allToAllInTurn(n()));
    plans.back().protocol = protocol;
  }
  for (const plan::Plan &plan : plans) {
    const bool isDirect = &plan == plans.data();
    add({.kind = isDirect ? occlKindAllReduce : occlKindAllToAll,
         .count = 5000,
         .plan = &plan,
         .inPlace = true,
         .inHeap = true});
    if (isDirect)
      add({.count = 5000,
           .scalar = Scalar::OnHost,
           .plan = &plan,
           .inPlace = true,
           .inHeap = true});
  }
  callAll();
  startAll();
}

/// The scalar in device memory is another one at each replay.
TEST_F(Scaled, ReplaysReadTheScalar) {
  add({.count = 70'001, .scalar = Scalar::OnDevice});
  const Job &job = *jobs[0];
  std::barrier<> meet(n()); // making and destroying graphs may wait for what runs
  inThreads([&](uint32_t rank) -> std::string {
    cudaStream_t stream = streamOf(rank);
    CapturedGraph replayed;
    if (std::string failure = capture(rank, job, replayed); !failure.empty())
      return failure;
    meet.arrive_and_wait();
    std::string wrong;
    const auto numbers =
        conformance::decode(job.expected[rank].data(), job.shape.count, job.shape.type);
    for (uint32_t times = 1; times < 8 && wrong.empty(); ++times) {
      // All ranks multiply by so many times as much: so is the sum.
      const std::vector<char> factor = job.encoded(times * factorOf(rank, job.shape.type));
      cudaMemcpyAsync(job.factorAt(rank), factor.data(), factor.size(), cudaMemcpyHostToDevice,
                      stream);
      job.prepare(rank, stream);
      wrong = replayed.replay(stream);
      const auto expected = conformance::encode(
          conformance::multiplied(numbers, times, job.shape.type), job.shape.type);
      if (wrong.empty())
        wrong = job.check(rank, stream, expected);
    }
    meet.arrive_and_wait();
    return wrong;
  });
}

TEST_F(Scaled, Averages) {
  if (n() < 2)
    GTEST_SKIP() << "one rank has no partial sums";
  const plan::Plan ring = plan::testing::ringAllReduce(n());
  for (uint32_t type = 0; type < kNumDataTypes; ++type) {
    if (!isFloat(static_cast<DataType>(type)))
      continue;
    add({.count = 4001, .type = static_cast<DataType>(type), .op = ReduceOp::Avg, .plan = &ring});
    add({.count = 4001, .type = static_cast<DataType>(type), .op = ReduceOp::Avg});
  }
  callAll();
}

/// Partial sums of what is not divided before would be infinite.
TEST_F(Scaled, AveragesOfTheLargestNumbers) {
  if (n() < 2)
    GTEST_SKIP() << "one rank has no partial sums";
  const plan::Plan ring = plan::testing::ringAllReduce(n());
  const auto handle = communicator::testing::handleOf(ring);
  constexpr uint64_t kCount = 3000;
  const std::vector<uint16_t> largest(kCount, 0x7800); // 32768: each part of it is exact
  std::vector<std::unique_ptr<DeviceBuffer>> buffers;
  for (uint32_t r = 0; r < n(); ++r) {
    cudaSetDevice(static_cast<int>(r % devices));
    buffers.push_back(std::make_unique<DeviceBuffer>(kCount * 2));
    cudaMemcpy(buffers[r]->get(), largest.data(), kCount * 2, cudaMemcpyHostToDevice);
  }
  inThreads([&](uint32_t rank) -> std::string {
    occlCall_t call = OCCL_CALL_INITIALIZER;
    call.plan = handle.get();
    call.sendBuffer = call.recvBuffer = buffers[rank]->get();
    call.count = kCount;
    call.dataType = occlFloat16;
    call.op = occlAvg;
    if (occlCall(comms[rank], &call, streamOf(rank)) != occlSuccess)
      return failed("occlCall");
    cudaStreamSynchronize(streamOf(rank));
    std::vector<uint16_t> got(kCount);
    cudaMemcpyAsync(got.data(), buffers[rank]->get(), kCount * 2, cudaMemcpyDeviceToHost,
                    streamOf(rank));
    cudaStreamSynchronize(streamOf(rank));
    // n rounded quotients, rounded sums: half a unit for each.
    for (uint16_t value : got)
      if (value < 0x7800 - 8 || value > 0x7800 + 8)
        return "an average of 32768 has the bits " + std::to_string(value);
    return "";
  });
}

TEST_F(Scaled, ScalarsWithoutMeaningAreRefused) {
  add({.count = 100, .scalar = Scalar::OnDevice});
  for (uint32_t rank = 0; rank < n(); ++rank) {
    cudaSetDevice(static_cast<int>(rank % devices));
    const auto refused = [&](const char *text, auto change) {
      occlCall_t call = jobs[0]->on(rank);
      change(call);
      EXPECT_EQ(occlCall(comms[rank], &call, streamOf(rank)), occlInvalidArgument) << text;
      EXPECT_NE(std::string(occlGetLastError()).find(text), std::string::npos)
          << occlGetLastError();
    };
    const float one = 1;
    refused("both be given", [&](occlCall_t &call) { call.scalar = &one; });
    refused("occlSum alone", [&](occlCall_t &call) { call.op = occlMax; });
    refused("reduces nothing", [&](occlCall_t &call) { call.kind = occlKindBroadcast; });
    refused("deviceScalar", [&](occlCall_t &call) { call.deviceScalar = &one; });
  }
  callAll(); // nothing has happened to the communicator
}

} // namespace
} // namespace occl::gpu_test
