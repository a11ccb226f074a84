// What tests of transfers on devices share: what is sent, its data, and ranks that are threads.
#pragma once

#include "runtime/api/occl_transfer.h"
#include "test/gpu/harness/ranks_on_devices.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace occl::gpu_test {

inline constexpr uint64_t kMiB = 1 << 20;

struct Sent {
  uint32_t from, to;
  uint64_t bytes;
  uint64_t key;           // of the data
  uint64_t source, place; // offsets in the buffers of both ranks
};

inline void fill(char *data, uint64_t bytes, uint64_t key) {
  uint64_t word = key * 0x9e3779b97f4a7c15u + 1;
  for (uint64_t i = 0; i < bytes; ++i) {
    if (i % 8 == 0)
      word = (word ^ word >> 29) * 0xbf58476d1ce4e5b9u + i;
    data[i] = static_cast<char>(word >> i % 8 * 8);
  }
}

inline std::string failed(const char *what) {
  return std::string(what) + ": " + occlGetLastError();
}

/// Transfers with places in one buffer for what a rank sends, one for what it receives.
struct Plan {
  std::vector<Sent> sent;
  std::vector<uint64_t> sendBytes, receiveBytes; // by rank

  explicit Plan(uint32_t n) : sendBytes(n), receiveBytes(n) {}
  /// misalignment: bytes left free before both ends.
  void add(uint32_t from, uint32_t to, uint64_t bytes, uint64_t misalignment = 0) {
    const auto place = [&](uint64_t &end) {
      const uint64_t begin = (end + 15) / 16 * 16 + misalignment;
      end = begin + bytes;
      return begin;
    };
    const uint64_t source = place(sendBytes[from]), to_ = place(receiveBytes[to]);
    sent.push_back({from, to, bytes, sent.size() * 31 + from * 7 + to, source, to_});
  }
};

/// A rank's buffers for a plan.
struct Buffers {
  Buffers(const Plan &plan, uint32_t rank)
      : plan(plan), rank(rank), source(plan.sendBytes[rank]), place(plan.receiveBytes[rank]) {}
  /// Another round's data; what is to be received is spoilt.
  void prepare(uint64_t round, cudaStream_t stream) {
    std::vector<char> data(plan.sendBytes[rank]);
    for (const Sent &one : plan.sent)
      if (one.from == rank)
        fill(data.data() + one.source, one.bytes, one.key + round * 1'000'003);
    cudaMemcpyAsync(source.get(), data.data(), data.size(), cudaMemcpyHostToDevice, stream);
    cudaMemsetAsync(place.get(), 0x5a, plan.receiveBytes[rank], stream);
    cudaStreamSynchronize(stream);
  }
  /// "" or what is wrong, also of bytes in between.
  std::string check(uint64_t round, cudaStream_t stream) const {
    std::vector<char> want(plan.receiveBytes[rank], 0x5a), got(want.size());
    for (const Sent &one : plan.sent)
      if (one.to == rank)
        fill(want.data() + one.place, one.bytes, one.key + round * 1'000'003);
    // Before: a copy to such memory waits for the stream, and CUDA has other threads wait as well.
    if (cudaStreamSynchronize(stream) != cudaSuccess)
      return "the stream fails";
    cudaMemcpyAsync(got.data(), place.get(), got.size(), cudaMemcpyDeviceToHost, stream);
    cudaStreamSynchronize(stream);
    auto [w, g] = std::mismatch(want.begin(), want.end(), got.begin());
    return w == want.end() ? ""
                           : "rank " + std::to_string(rank) + ", round " + std::to_string(round) +
                                 ": wrong from byte " + std::to_string(w - want.begin()) + " of " +
                                 std::to_string(want.size());
  }
  std::string call(const Sent &one, bool isSend, occlComm_t comm, cudaStream_t stream) const {
    const occlResult_t result =
        isSend ? occlSend(source.get() + one.source, one.bytes, occlUint8, one.to, comm, stream)
               : occlRecv(place.get() + one.place, one.bytes, occlUint8, one.from, comm, stream);
    return result == occlSuccess ? "" : failed(isSend ? "occlSend" : "occlRecv");
  }

  const Plan &plan;
  const uint32_t rank;
  DeviceBuffer source, place;
};

class Transfers : public RanksOnDevices {
protected:
  void SetUp() override {
    RanksOnDevices::SetUp();
    if (IsSkipped())
      return;
    const char *given = std::getenv("OCCL_TEST_SEED");
    seed = given ? static_cast<uint32_t>(std::atoi(given)) : 20261123;
    std::printf("OCCL_TEST_SEED=%u\n", seed);
    startWithTimeout(0);
  }
  /// By rank. Before anything runs, and freed when all is over: CUDA waits for what runs.
  std::vector<std::unique_ptr<Buffers>> buffersFor(const Plan &plan) const {
    std::vector<std::unique_ptr<Buffers>> all;
    for (uint32_t rank = 0; rank < n(); ++rank) {
      cudaSetDevice(static_cast<int>(rank % devices));
      all.push_back(std::make_unique<Buffers>(plan, rank));
      all.back()->prepare(0, streamOf(rank)); // loads what that needs
    }
    return all;
  }
  std::vector<std::unique_ptr<DeviceBuffer>> memory(uint64_t bytes) const {
    std::vector<std::unique_ptr<DeviceBuffer>> all;
    for (uint32_t rank = 0; rank < n(); ++rank) {
      cudaSetDevice(static_cast<int>(rank % devices));
      all.push_back(std::make_unique<DeviceBuffer>(bytes));
    }
    return all;
  }
  /// In the order of each pair, but pairs mixed in an order of the rank's own.
  std::string callAll(const Buffers &buffers, cudaStream_t stream, std::mt19937 &random) const {
    std::map<std::pair<bool, uint32_t>, std::vector<const Sent *>> byDirection;
    for (const Sent &one : buffers.plan.sent) {
      if (one.from == buffers.rank)
        byDirection[{true, one.to}].push_back(&one);
      if (one.to == buffers.rank)
        byDirection[{false, one.from}].push_back(&one);
    }
    std::vector<std::pair<bool, uint32_t>> turns;
    std::map<std::pair<bool, uint32_t>, size_t> next;
    for (const auto &[direction, transfers] : byDirection)
      turns.insert(turns.end(), transfers.size(), direction);
    std::ranges::shuffle(turns, random);
    for (const auto &direction : turns)
      if (std::string wrong = buffers.call(*byDirection[direction][next[direction]++],
                                           direction.first, comms[buffers.rank], stream);
          !wrong.empty())
        return wrong;
    return "";
  }
  /// What the rank has of `number` of the plan's, from `first` on, as one group.
  std::string callPart(const Buffers &buffers, size_t first, size_t number) const {
    std::string wrong;
    occlGroupStart();
    for (size_t i = first; i < std::min(first + number, buffers.plan.sent.size()); ++i) {
      const Sent &one = buffers.plan.sent[i];
      for (const bool isSend : {false, true})
        if ((isSend ? one.from : one.to) == buffers.rank && wrong.empty())
          wrong = buffers.call(one, isSend, comms[buffers.rank], streamOf(buffers.rank));
    }
    if (occlGroupEnd() != occlSuccess)
      return failed("occlGroupEnd");
    return wrong;
  }
  /// Each a group on every rank, round by round.
  void runGroups(const Plan &plan, uint64_t rounds) {
    const auto all = buffersFor(plan);
    inThreads([&](uint32_t rank) -> std::string {
      std::mt19937 random(seed + rank);
      Buffers &buffers = *all[rank];
      for (uint64_t round = 0; round < rounds; ++round) {
        buffers.prepare(round, streamOf(rank));
        occlGroupStart();
        std::string wrong = callAll(buffers, streamOf(rank), random);
        if (occlGroupEnd() != occlSuccess)
          return failed("occlGroupEnd");
        if (wrong.empty())
          wrong = buffers.check(round, streamOf(rank));
        if (!wrong.empty())
          return wrong;
      }
      return "";
    });
  }

  /// Groups of so many of the plan's, behind each other: the host waits for each round alone.
  void runGroupsOf(size_t number, const Plan &plan, uint64_t rounds) {
    const auto all = buffersFor(plan);
    inThreads([&](uint32_t rank) -> std::string {
      Buffers &buffers = *all[rank];
      std::string wrong;
      for (uint64_t round = 0; round < rounds && wrong.empty(); ++round) {
        buffers.prepare(round, streamOf(rank));
        for (size_t first = 0; first < plan.sent.size() && wrong.empty(); first += number)
          wrong = callPart(buffers, first, number);
        if (wrong.empty())
          wrong = buffers.check(round, streamOf(rank));
      }
      return wrong;
    });
  }

  uint32_t seed = 0;
};

} // namespace occl::gpu_test
