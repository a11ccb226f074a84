// Calls of occlStart on devices, with what they are to give, and the ranks that make them. For
// tests.
#pragma once

#include "runtime/exec/conformance/reference.h"
#include "support/testing/seed.h"
#include "test/gpu/harness/ranks_on_devices.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace occl::gpu_test {
namespace conformance = interpreter::conformance;

struct Kind {
  occlKind_t kind;
  const char *name;                 // as plans have it
  uint32_t inputParts, outputParts; // 0: of a number of ranks
  bool reduces = false, hasRoot = false;
};
constexpr Kind kKinds[] = {{occlKindAllReduce, "allreduce", 1, 1, true},
                           {occlKindAllGather, "allgather", 1, 0},
                           {occlKindReduceScatter, "reducescatter", 0, 1, true},
                           {occlKindBroadcast, "broadcast", 1, 1, false, true},
                           {occlKindReduce, "reduce", 1, 1, true, true},
                           {occlKindAllToAll, "alltoall", 0, 0},
                           {occlKindGather, "gather", 1, 0, false, true},
                           {occlKindScatter, "scatter", 0, 1, false, true}};

/// One call on all ranks, with buffers and what is expected of each.
struct Tried {
  Kind kind;
  uint64_t id, count;
  DataType type;
  ReduceOp op;
  uint32_t root;
  std::vector<std::unique_ptr<DeviceBuffer>> inputs, outputs;
  std::vector<std::vector<char>> expected;

  Tried(const Kind &kind, uint64_t id, uint64_t count, DataType type, ReduceOp op, uint32_t root,
        uint32_t n, uint32_t devices)
      : kind(kind), id(id), count(count), type(type), op(op), root(root) {
    std::vector<conformance::Numbers> numbers;
    for (uint32_t r = 0; r < n; ++r)
      numbers.push_back(conformance::exactInput((kind.inputParts ? kind.inputParts : n) * count,
                                                type, op, id * 100 + r));
    for (uint32_t r = 0; r < n; ++r) {
      cudaSetDevice(static_cast<int>(r % devices));
      const auto input = conformance::encode(numbers[r], type);
      expected.push_back(expectedOf(numbers, r));
      const uint64_t bytes = (kind.outputParts ? kind.outputParts : n) * count * sizeOf(type);
      inputs.push_back(std::make_unique<DeviceBuffer>(input.size()));
      outputs.push_back(std::make_unique<DeviceBuffer>(bytes));
      EXPECT_EQ(cudaMemcpy(inputs[r]->get(), input.data(), input.size(), cudaMemcpyHostToDevice),
                cudaSuccess);
      EXPECT_EQ(cudaMemset(outputs[r]->get(), 0x5a, std::max<uint64_t>(bytes, 1)), cudaSuccess);
    }
    cudaDeviceSynchronize();
  }
  occlCall_t on(uint32_t rank) const {
    occlCall_t call = OCCL_CALL_INITIALIZER;
    call.kind = kind.kind;
    call.sendBuffer = inputs[rank]->get();
    call.recvBuffer = outputs[rank]->get();
    call.count = count;
    call.dataType = static_cast<occlDataType_t>(type);
    call.op = static_cast<occlRedOp_t>(op);
    call.root = root;
    call.id = id;
    return call;
  }
  std::vector<char> expectedOf(const std::vector<conformance::Numbers> &numbers,
                               uint32_t rank) const {
    std::vector<char> all;
    const auto append = [&](uint32_t from, uint64_t begin, uint64_t bytes) {
      const std::vector<char> whole = conformance::encode(numbers[from], type);
      const auto first = whole.begin() + static_cast<ptrdiff_t>(begin);
      all.insert(all.end(), first, first + static_cast<ptrdiff_t>(bytes));
    };
    const uint64_t bytes = count * sizeOf(type);
    if (kind.kind == occlKindGather)
      for (uint32_t r = 0; rank == root && r < numbers.size(); ++r)
        append(r, 0, bytes);
    else if (kind.kind == occlKindScatter)
      append(root, rank * bytes, bytes);
    else
      all = conformance::encode(
          conformance::expectedOutput(kind.name, numbers, rank, root, count, type, op), type);
    return all;
  }
  std::string check(uint32_t rank, cudaStream_t stream) const {
    const std::vector<char> &want = expected[rank];
    std::vector<char> got(want.size());
    cudaMemcpyAsync(got.data(), outputs[rank]->get(), got.size(), cudaMemcpyDeviceToHost, stream);
    if (cudaStreamSynchronize(stream) != cudaSuccess)
      return "the output cannot be read";
    auto [w, g] = std::mismatch(want.begin(), want.end(), got.begin());
    return w == want.end() ? ""
                           : std::string(kind.name) + " of id " + std::to_string(id) + ", count " +
                                 std::to_string(count) + ", rank " + std::to_string(rank) +
                                 ": wrong from byte " + std::to_string(w - want.begin()) + " of " +
                                 std::to_string(want.size());
  }
};

inline std::string failed(const char *what) {
  return std::string(what) + ": " + occlGetLastError();
}

class Started : public RanksOnDevices {
protected:
  void SetUp() override {
    RanksOnDevices::SetUp();
    if (IsSkipped())
      return;
    seed = static_cast<uint32_t>(printedSeed());
    startLarge();
  }
  void startLarge() {
    occlConfig_t config = smallConfig();
    config.arenaBytes = 512 << 20;
    start(numRanks(), config);
  }
  std::unique_ptr<Tried> make(const Kind &kind, uint64_t id, uint64_t count,
                              DataType type = DataType::Float32, ReduceOp op = ReduceOp::Sum,
                              uint32_t root = 0) {
    return std::make_unique<Tried>(kind, id, count, type, op, kind.hasRoot ? root : 0, n(),
                                   devices);
  }
  /// Each rank starts all of them in an order of its own, and waits for them in another.
  void runShuffled(const std::vector<std::unique_ptr<Tried>> &all, bool byTest = false) {
    inThreads([&](uint32_t rank) -> std::string {
      std::mt19937 random(seed + rank);
      std::vector<size_t> order(all.size());
      std::iota(order.begin(), order.end(), 0);
      std::ranges::shuffle(order, random);
      std::vector<std::pair<size_t, occlRequest_t>> requests;
      for (size_t i : order) {
        const occlCall_t call = all[i]->on(rank);
        requests.emplace_back(i, 0);
        if (occlStart(comms[rank], &call, nullptr, nullptr, &requests.back().second) != occlSuccess)
          return failed("occlStart");
      }
      std::ranges::shuffle(requests, random);
      for (auto [i, request] : requests) {
        occlResult_t result = occlInProgress;
        while (byTest && (result = occlTest(comms[rank], request)) == occlInProgress)
          std::this_thread::yield();
        if (!byTest)
          result = occlWait(comms[rank], request);
        if (result != occlSuccess)
          return failed("occlWait");
        if (std::string wrong = all[i]->check(rank, onDevices[rank]->stream()); !wrong.empty())
          return wrong;
      }
      return "";
    });
  }

  uint32_t seed = 0;
};

} // namespace occl::gpu_test
