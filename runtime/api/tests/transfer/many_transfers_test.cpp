// A group of 10,000 transfers of 0 to 64 MiB between four ranks, each in an order of its own.
#include "runtime/api/occl_transfer.h"
#include "runtime/api/testing/harness.h"
#include "support/testing/seed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace occl::communicator::testing {
namespace {

constexpr uint32_t kRanks = 4;
constexpr uint64_t kMiB = 1 << 20, kLargest = 64 * kMiB;
/// Most sizes end at 1 MiB, else all data together would be some 35 GB.
constexpr uint64_t kUsual = kMiB, kNumLarge = 24, kNumEmpty = 100;
/// Of places in the data that are sent: two transfers seldom have the same.
constexpr uint64_t kMostOffset = kMiB;
/// What lies in memory before it is received, and between receives afterwards.
constexpr char kUntouched = 0x5a;

struct Transfer {
  uint32_t from, to;
  uint64_t bytes;
  uint64_t source; // offset in the data that all ranks send parts of
  uint64_t place;  // offset in the receiver's memory
};

uint64_t mixed(uint64_t value) {
  value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
  value = (value ^ value >> 27) * 0x94d049bb133111ebu;
  return value ^ value >> 31;
}

/// Where the data of a pair's transfer of this number begin.
uint64_t sourceOf(uint64_t seed, uint32_t from, uint32_t to, uint64_t ordinal) {
  return mixed(mixed(seed + from * kRanks + to) + ordinal) % kMostOffset;
}

/// All data. What is sent and what is expected are made each on its own.
std::vector<char> dataOf(uint64_t seed) {
  std::vector<char> data(kLargest + kMostOffset);
  for (uint64_t at = 0; at < data.size(); at += sizeof(uint64_t)) {
    const uint64_t word = mixed(seed + at);
    std::memcpy(data.data() + at, &word, sizeof word);
  }
  return data;
}

/// 10,000 between any two ranks, a rank and itself too: some of no bytes, one of 64 MiB, the others
/// of every magnitude, few of them of more than 1 MiB.
struct Graph {
  explicit Graph(uint64_t seed) : seed(seed) {
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<double> unit(0, 1);
    const auto logUniform = [&](uint64_t most) {
      return std::min(most, static_cast<uint64_t>(std::pow(double(most) + 1, unit(random))) - 1);
    };
    std::vector<uint64_t> sizes(kNumEmpty / kSlowness, 0);
    sizes.push_back(kLargest);
    for (uint64_t i = 0; i < kNumLarge / kSlowness; ++i)
      sizes.push_back(logUniform(kLargest));
    while (sizes.size() < 10'000 / kSlowness)
      sizes.push_back(logUniform(kUsual));
    std::ranges::shuffle(sizes, random);
    std::map<std::pair<uint32_t, uint32_t>, uint64_t> ordinals;
    for (const uint64_t bytes : sizes) {
      const auto from = static_cast<uint32_t>(random() % kRanks),
                 to = static_cast<uint32_t>(random() % kRanks);
      // Up to 15 bytes of nobody's before each place, so places are aligned to nothing.
      const uint64_t place = received[to] + 1 + random() % 15;
      received[to] = place + bytes;
      transfers.push_back(
          {from, to, bytes, sourceOf(seed, from, to, ordinals[{from, to}]++), place});
    }
  }

  /// Of all ranks together.
  uint64_t bytes() const {
    uint64_t sum = 0;
    for (const Transfer &one : transfers)
      sum += one.bytes;
    return sum;
  }

  uint64_t seed;
  std::vector<Transfer> transfers;
  uint64_t received[kRanks] = {}; // where each rank's memory ends
};

/// A transfer with the side on which the rank is.
struct Call {
  bool isSend;
  const Transfer *transfer;
};

/// The rank's calls: each direction of a pair in order, directions in random turns.
std::vector<Call> callsOf(const Graph &graph, uint32_t rank) {
  std::map<std::pair<bool, uint32_t>, std::deque<Call>> directions;
  std::vector<std::deque<Call> *> turns;
  const auto add = [&](bool isSend, uint32_t peer, const Transfer &one) {
    std::deque<Call> &direction = directions[{isSend, peer}];
    direction.push_back({isSend, &one});
    turns.push_back(&direction);
  };
  for (const Transfer &one : graph.transfers) {
    if (one.from == rank)
      add(true, one.to, one);
    if (one.to == rank)
      add(false, one.from, one);
  }
  std::mt19937_64 own(mixed(graph.seed + rank));
  std::ranges::shuffle(turns, own);
  std::vector<Call> calls;
  for (std::deque<Call> *direction : turns) {
    calls.push_back(direction->front());
    direction->pop_front();
  }
  return calls;
}

/// All of a rank's calls as one group. "", or what is wrong.
std::string runGroup(const std::vector<Call> &calls, occlComm_t comm, const char *data,
                     char *memory) {
  if (occlGroupStart() != occlSuccess)
    return occlGetLastError();
  for (const auto &[isSend, one] : calls)
    if ((isSend ? occlSend(data + one->source, one->bytes, occlUint8, one->to, comm, nullptr)
                : occlRecv(memory + one->place, one->bytes, occlUint8, one->from, comm, nullptr)) !=
        occlSuccess)
      return std::string("a call in the group: ") + occlGetLastError();
  return occlGroupEnd() == occlSuccess ? "" : std::string("occlGroupEnd: ") + occlGetLastError();
}

/// What a rank has received, and that nothing else was stored to. "", or what is wrong.
std::string check(const Graph &graph, uint32_t rank, const std::vector<char> &expected,
                  const std::vector<char> &memory) {
  uint64_t end = 0, number = 0;
  for (const Transfer &one : graph.transfers) {
    ++number;
    if (one.to != rank)
      continue;
    const std::string name = "transfer " + std::to_string(number) + " of " +
                             std::to_string(one.bytes) + " bytes from rank " +
                             std::to_string(one.from) + " to " + std::to_string(rank);
    for (; end < one.place; ++end)
      if (memory[end] != kUntouched)
        return "a byte before " + name + " is not as it was";
    if (std::memcmp(memory.data() + one.place, expected.data() + one.source, one.bytes) != 0)
      return "wrong data of " + name;
    end = one.place + one.bytes;
  }
  for (; end < memory.size(); ++end)
    if (memory[end] != kUntouched)
      return "a byte behind the last of rank " + std::to_string(rank) + " is not as it was";
  return "";
}

TEST(ManyTransfers, InAGroupInAnOrderOfEachRanksOwn) {
  const uint64_t seed = printedSeed();
  const Graph graph(seed);
  ASSERT_EQ(graph.transfers.size(), 10'000 / kSlowness);
  ASSERT_LT(graph.bytes(), 1'500 * kMiB) << "too much for small machines";
  const std::vector<char> data = dataOf(seed), expected = dataOf(seed);
  Ranks ranks(kRanks);
  ranks.run([&](uint32_t r) {
    std::vector<char> memory(graph.received[r] + 16, kUntouched);
    ASSERT_EQ(runGroup(callsOf(graph, r), ranks[r], data.data(), memory.data()), "");
    EXPECT_EQ(check(graph, r, expected, memory), "");
  });
  EXPECT_TRUE(data == expected) << "what is sent is nobody's to change";
}

} // namespace
} // namespace occl::communicator::testing
