// Random sequences of groups: what a rank receives is what the rules say, whatever the order in
// which each rank names the operations of a group, and in whichever streams.
#include "nccl/testing/ranks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <random>

using namespace occl::nccl;
using namespace occl::nccl::testing;

namespace {

constexpr int kRanks = 4;
constexpr int kGroups = 60 / kSlowness;

/// An operation of all ranks; a transfer is one of two of them.
struct Step {
  enum Kind { AllReduce, Broadcast, AllGather, Transfer } kind;
  int from = 0, to = 0; // from: also the root
  size_t count = 0;
};
using Group = std::vector<Step>;

std::vector<Group> makeGroups(uint32_t seed) {
  std::mt19937 random(seed);
  auto below = [&](int n) { return static_cast<int>(random() % static_cast<uint32_t>(n)); };
  std::vector<Group> groups(kGroups);
  for (Group &group : groups)
    for (int n = 1 + below(12); n > 0; --n) {
      Step step{below(3) ? Step::Transfer : static_cast<Step::Kind>(below(3)), below(kRanks),
                below(kRanks), 0};
      const size_t counts[] = {0, 1, 7, 100, 5000, 40000};
      step.count = counts[below(6)];
      group.push_back(step);
    }
  return groups;
}

int64_t value(size_t group, size_t step, int rank, size_t i) {
  return static_cast<int64_t>(group * 1000003 + step * 10007 + static_cast<size_t>(rank) * 101 + i);
}

/// One rank's side of a run.
class Side {
public:
  Side(const std::vector<Group> &groups, ncclComm_t comm, int rank, uint32_t seed)
      : groups(groups), comm(comm), rank(rank),
        random(seed * 100 + static_cast<uint32_t>(rank)), streams{HostStream::make(),
                                                                  HostStream::make()} {}

  void run() {
    for (size_t g = 0; g < groups.size(); ++g) {
      ASSERT_EQ(ncclGroupStart(), ncclSuccess);
      runGroup(g);
      ASSERT_EQ(ncclGroupEnd(), ncclSuccess) << ncclGetLastError(nullptr);
    }
    for (const auto &stream : streams)
      stream->synchronize();
    for (const auto &[key, buffer] : received)
      check(key.first, key.second, buffer);
  }

private:
  using Buffer = std::vector<int64_t>;

  cudaStream_t anyStream() { return streams[random() % 2]->handle(); }

  /// The collectives in their order, the transfers of each peer and direction in theirs; between
  /// those any order.
  void runGroup(size_t g) {
    std::map<std::pair<int, int>, std::deque<size_t>> queues;
    std::vector<std::pair<int, int>> order;
    auto take = [&](int kind, int peer, size_t s) {
      queues[{kind, peer}].push_back(s);
      order.push_back({kind, peer});
    };
    for (size_t s = 0; s < groups[g].size(); ++s) {
      const Step &step = groups[g][s];
      if (step.kind != Step::Transfer)
        take(0, 0, s);
      if (step.kind == Step::Transfer && step.from == rank)
        take(1, step.to, s);
      if (step.kind == Step::Transfer && step.to == rank)
        take(2, step.from, s);
    }
    std::shuffle(order.begin(), order.end(), random);
    for (const auto &key : order) {
      const size_t s = queues[key].front();
      queues[key].pop_front();
      ASSERT_EQ(call(g, s, key.first == 1), ncclSuccess) << ncclGetLastError(nullptr);
    }
  }

  ncclResult_t call(size_t g, size_t s, bool sends) {
    const Step &step = groups[g][s];
    const bool gathers = step.kind == Step::AllGather;
    Buffer &in = sent[{g, s}];
    in.resize(step.count);
    for (size_t i = 0; i < step.count; ++i)
      in[i] = value(g, s, rank, i);
    if (sends)
      return ncclSend(in.data(), step.count, ncclInt64, step.to, comm, anyStream());
    Buffer &out = received[{g, s}];
    out.assign(step.count * (gathers ? kRanks : 1), -1);
    switch (step.kind) {
    case Step::AllReduce:
      return ncclAllReduce(in.data(), out.data(), step.count, ncclInt64, ncclSum, comm,
                           anyStream());
    case Step::Broadcast:
      return ncclBroadcast(in.data(), out.data(), step.count, ncclInt64, step.from, comm,
                           anyStream());
    case Step::AllGather:
      return ncclAllGather(in.data(), out.data(), step.count, ncclInt64, comm, anyStream());
    case Step::Transfer:
      break;
    }
    return ncclRecv(out.data(), step.count, ncclInt64, step.from, comm, anyStream());
  }

  void check(size_t g, size_t s, const Buffer &buffer) {
    const Step &step = groups[g][s];
    for (size_t i = 0; i < buffer.size(); ++i) {
      int64_t right = value(g, s, step.from, i);
      if (step.kind == Step::AllGather)
        right = value(g, s, static_cast<int>(i / step.count), i % step.count);
      if (step.kind == Step::AllReduce) {
        right = 0;
        for (int other = 0; other < kRanks; ++other)
          right += value(g, s, other, i);
      }
      ASSERT_EQ(buffer[i], right) << "rank " << rank << ", group " << g << ", step " << s;
    }
  }

  const std::vector<Group> &groups;
  const ncclComm_t comm;
  const int rank;
  std::mt19937 random;
  const std::shared_ptr<HostStream> streams[2];
  std::map<std::pair<size_t, size_t>, Buffer> sent, received;
};

class Random : public ::testing::TestWithParam<uint32_t> {};

} // namespace

TEST_P(Random, GroupsEndWithTheRightData) {
  const std::vector<Group> groups = makeGroups(GetParam());
  Ranks ranks(kRanks);
  eachRank(kRanks, [&](int rank) { Side(groups, ranks[rank], rank, GetParam()).run(); });
}

INSTANTIATE_TEST_SUITE_P(Seeds, Random, ::testing::Range(1u, 6u));
