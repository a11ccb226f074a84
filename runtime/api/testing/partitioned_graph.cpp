#include "runtime/api/testing/partitioned_graph.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>
#include <thread>
#include <tuple>
#include <utility>

namespace occl::communicator::testing {

namespace {

constexpr std::pair<occlDataType_t, uint64_t> kTypes[] = {
    {occlUint8, 1}, {occlFloat16, 2}, {occlInt32, 4}, {occlFloat64, 8}};

/// Of a request in an epoch.
char byteOf(size_t edge, uint64_t epoch, uint64_t at) {
  return static_cast<char>(at * 131 + at / 253 + edge * 17 + epoch * 29 + 1);
}

} // namespace

struct PartitionedGraph::Side {
  const Edge *edge = nullptr;
  size_t number = 0;
  bool isSend = false;
  occlPart_t part = nullptr;
  char *buffer = nullptr;
  std::vector<char> own;

  int64_t partitions() const { return isSend ? edge->sent : edge->received; }
  uint64_t count() const {
    return partitions() == 0 ? 0 : edge->elements / static_cast<uint64_t>(partitions());
  }
  uint64_t partitionBytes() const { return count() * edge->elementBytes; }
  uint64_t bytes() const { return edge->elements * edge->elementBytes; }

  void fill(int64_t p, uint64_t epoch) const {
    const uint64_t begin = static_cast<uint64_t>(p) * partitionBytes();
    for (uint64_t at = begin; at < begin + partitionBytes(); ++at)
      buffer[at] = byteOf(number, epoch, at);
  }
  bool isRight(int64_t p, uint64_t epoch) const {
    const uint64_t begin = static_cast<uint64_t>(p) * partitionBytes();
    for (uint64_t at = begin; at < begin + partitionBytes(); ++at)
      if (buffer[at] != byteOf(number, epoch, at))
        return false;
    return true;
  }
};

PartitionedGraph::PartitionedGraph(uint32_t numRanks, uint64_t number, uint64_t mostBytes,
                                   uint64_t seed)
    : seed(seed) {
  std::mt19937_64 random(seed);
  for (uint64_t i = 0; i < number; ++i) {
    Edge edge{};
    edge.source = static_cast<uint32_t>(random() % numRanks);
    edge.destination = static_cast<uint32_t>(random() % numRanks);
    edge.tag = static_cast<int64_t>(random() % 3 * (uint64_t{1} << 40));
    std::tie(edge.type, edge.elementBytes) = kTypes[random() % std::size(kTypes)];
    constexpr int64_t kFew[] = {1, 2, 3, 4, 8, 17, 33, 64};
    edge.sent = kFew[random() % std::size(kFew)];
    edge.received = random() % 4 == 0 ? edge.sent : kFew[random() % std::size(kFew)];
    const uint64_t least = static_cast<uint64_t>(std::lcm(edge.sent, edge.received));
    std::uniform_real_distribution<double> magnitude(0, std::log2(static_cast<double>(mostBytes)));
    const auto bytes = static_cast<uint64_t>(std::exp2(magnitude(random)));
    edge.elements = bytes / edge.elementBytes / least * least;
    edge.perMessage = random() % 2 ? 0 : random() % static_cast<uint64_t>(edge.sent) + 1;
    if (random() % 16 == 0) // nothing of nothing
      edge.sent = edge.received = 0, edge.elements = edge.perMessage = 0;
    edges.push_back(edge);
  }
}

/// One rank in one run.
class PartitionedGraph::Rank {
public:
  Rank(const PartitionedGraph &graph, occlComm_t comm, uint32_t rank, const Memory *memory)
      : comm(comm), memory(memory), random(graph.seed ^ (rank + 1) * 0x9e3779b97f4a7c15) {
    for (size_t i = 0; i < graph.edges.size(); ++i)
      for (bool isSend : {true, false})
        if ((isSend ? graph.edges[i].source : graph.edges[i].destination) == rank)
          sides.push_back({&graph.edges[i], i, isSend, nullptr, nullptr, {}});
  }

  std::string run(uint64_t epochs) {
    for (Side &side : sides)
      if (!init(side))
        return "init: " + std::string(occlGetLastError());
    for (uint64_t epoch = 1; epoch <= epochs; ++epoch)
      if (std::string wrong = runEpoch(epoch); !wrong.empty())
        return "epoch " + std::to_string(epoch) + ": " + wrong;
    std::ranges::shuffle(sides, random);
    for (Side &side : sides)
      if (occlPfree(side.part) != occlSuccess)
        return "free: " + std::string(occlGetLastError());
    return {};
  }

private:
  bool init(Side &side) {
    const Edge &edge = *side.edge;
    if (memory) {
      side.buffer = static_cast<char *>(memory->allocate(memory->context, side.bytes() + 1));
    } else {
      side.own.assign(side.bytes() + 1, 0);
      side.buffer = side.own.data();
    }
    occlPartConfig_t config = OCCL_PART_CONFIG_INITIALIZER;
    config.partitionsPerMessage = edge.perMessage;
    return (side.isSend ? occlPsendInit(comm, side.buffer, edge.sent, side.count(), edge.type,
                                        edge.destination, edge.tag, &config, &side.part)
                        : occlPrecvInit(comm, side.buffer, edge.received, side.count(), edge.type,
                                        edge.source, edge.tag, nullptr, &side.part)) == occlSuccess;
  }

  std::string runEpoch(uint64_t epoch) {
    std::vector<Side *> order;
    for (Side &side : sides)
      order.push_back(&side);
    std::ranges::shuffle(order, random);
    for (Side *side : order) {
      if (!side->isSend)
        std::fill(side->buffer, side->buffer + side->bytes(), 0);
      if (occlPstart(side->part) != occlSuccess)
        return "start: " + std::string(occlGetLastError());
    }
    std::vector<std::string> wrongs(1 + random() % 3);
    std::vector<std::thread> threads;
    for (size_t t = 0; t < wrongs.size(); ++t)
      threads.emplace_back(
          [&, t, from = random()] { wrongs[t] = markShare(epoch, t, wrongs.size(), from); });
    std::ranges::shuffle(order, random);
    std::string wrong;
    for (Side *side : order)
      if (wrong.empty())
        wrong = side->isSend ? end(*side) : receive(*side, epoch);
    for (std::thread &thread : threads)
      thread.join();
    for (const std::string &other : wrongs)
      wrong = wrong.empty() ? other : wrong;
    return wrong;
  }

  /// Those of all sends whose number is t modulo n, in any order, alone or some at once.
  std::string markShare(uint64_t epoch, size_t t, size_t n, uint64_t from) const {
    std::mt19937_64 own(from);
    std::vector<std::pair<const Side *, int64_t>> marks;
    for (const Side &side : sides)
      for (int64_t p = 0; side.isSend && p < side.partitions(); ++p)
        if (static_cast<size_t>(p) % n == t)
          marks.emplace_back(&side, p);
    std::ranges::shuffle(marks, own);
    for (size_t i = 0; i < marks.size();) {
      const auto [side, p] = marks[i];
      std::vector<int64_t> list;
      for (; i < marks.size() && marks[i].first == side && list.size() < 3; ++i)
        list.push_back(marks[i].second);
      for (int64_t each : list)
        side->fill(each, epoch);
      const occlResult_t result = list.size() > 1
                                      ? occlPreadyList(side->part, list.size(), list.data())
                                  : own() % 2 ? occlPready(side->part, p)
                                              : occlPreadyRange(side->part, p, p);
      if (result != occlSuccess)
        return "ready: " + std::string(occlGetLastError());
    }
    return {};
  }

  std::string end(Side &side) {
    occlResult_t result = occlInProgress;
    if (random() % 2)
      while ((result = occlPtest(side.part)) == occlInProgress)
        std::this_thread::yield();
    else
      result = occlPwait(side.part);
    return result == occlSuccess ? "" : "wait: " + std::string(occlGetLastError());
  }

  /// Either by asking alone, in any order, or by waiting.
  std::string receive(Side &side, uint64_t epoch) {
    if (random() % 2) {
      std::vector<int64_t> asked(static_cast<size_t>(side.partitions()));
      std::iota(asked.begin(), asked.end(), 0);
      std::ranges::shuffle(asked, random);
      for (int64_t q : asked) {
        for (int32_t arrived = 0; !arrived; std::this_thread::yield())
          if (occlParrived(side.part, q, &arrived) != occlSuccess)
            return "arrived: " + std::string(occlGetLastError());
        if (!side.isRight(q, epoch))
          return wrongData(side, q);
      }
    }
    if (std::string wrong = end(side); !wrong.empty())
      return wrong;
    for (int64_t q = 0; q < side.partitions(); ++q)
      if (!side.isRight(q, epoch))
        return wrongData(side, q);
    return {};
  }
  static std::string wrongData(const Side &side, int64_t q) {
    return "wrong data in partition " + std::to_string(q) + " of " +
           std::to_string(side.partitions()) + " of request " + std::to_string(side.number);
  }

  occlComm_t comm;
  const Memory *memory;
  std::mt19937_64 random;
  std::vector<Side> sides;
};

PartitionedGraph::Memory PartitionedGraph::ofHeap(occlComm_t comm) {
  const auto allocate = [](void *context, uint64_t bytes) {
    void *at = nullptr;
    const occlResult_t result = occlMemAlloc(static_cast<occlComm_t>(context), bytes, &at);
    return result == occlSuccess ? at : nullptr;
  };
  return {allocate, comm};
}

std::string PartitionedGraph::run(occlComm_t comm, uint32_t rank, uint64_t epochs,
                                  const Memory *memory) const {
  return Rank(*this, comm, rank, memory).run(epochs);
}

} // namespace occl::communicator::testing
