#include "runtime/api/testing/transfer_graph.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <utility>

namespace occl::communicator::testing {

namespace {

constexpr std::pair<occlDataType_t, uint64_t> kTypes[] = {
    {occlUint8, 1}, {occlFloat16, 2}, {occlInt32, 4}, {occlFloat64, 8}};

constexpr uint64_t kMostOffset = 4096;

} // namespace

TransferGraph::TransferGraph(uint32_t numRanks, uint64_t number, uint64_t mostBytes, uint64_t seed)
    : seed(seed), numSourceBytes(mostBytes + kMostOffset) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> magnitude(0,
                                                   std::log2(static_cast<double>(mostBytes) + 1));
  for (uint64_t i = 0; i < number; ++i) {
    Edge edge{};
    edge.source = static_cast<uint32_t>(random() % numRanks);
    edge.destination = static_cast<uint32_t>(random() % numRanks);
    const auto [type, size] = kTypes[random() % std::size(kTypes)];
    const uint64_t bytes = random() % 2 == 0
                               ? random() % std::min<uint64_t>(mostBytes + 1, 200)
                               : static_cast<uint64_t>(std::exp2(magnitude(random))) - 1;
    edge.type = type;
    edge.count = std::min(bytes, mostBytes) / size;
    edge.bytes = edge.count * size;
    edge.from = random() % kMostOffset;
    edges.push_back(edge);
  }
}

uint64_t TransferGraph::countOf(uint32_t rank) const {
  uint64_t count = 0;
  for (const Edge &edge : edges)
    count += (edge.source == rank) + (edge.destination == rank);
  return count;
}

uint64_t TransferGraph::receivedBytes(uint32_t rank) const {
  uint64_t bytes = 0;
  for (const Edge &edge : edges)
    bytes += edge.destination == rank ? edge.bytes : 0;
  return bytes;
}

void TransferGraph::fillSource(char *source) const {
  std::mt19937_64 random(seed);
  for (uint64_t i = 0; i < numSourceBytes; i += sizeof(uint64_t)) {
    const uint64_t word = random();
    std::memcpy(source + i, &word, std::min<uint64_t>(sizeof word, numSourceBytes - i));
  }
}

/// Directions of pairs in random turns.
std::vector<TransferGraph::Step> TransferGraph::orderOf(uint32_t rank, char *memory) const {
  std::map<std::pair<uint32_t, uint32_t>, std::vector<Step>> sends, receives;
  std::vector<std::vector<Step> *> turns;
  for (const Edge &edge : edges)
    for (bool isSend : {true, false}) {
      if (rank != (isSend ? edge.source : edge.destination))
        continue;
      auto &direction = (isSend ? sends : receives)[{edge.source, edge.destination}];
      direction.push_back({isSend, &edge, memory});
      memory += isSend ? 0 : edge.bytes;
      turns.push_back(&direction);
    }
  std::mt19937_64 random(seed * 1000 + rank);
  std::shuffle(turns.begin(), turns.end(), random);
  std::map<std::vector<Step> *, size_t> next;
  std::vector<Step> order;
  for (std::vector<Step> *direction : turns)
    order.push_back((*direction)[next[direction]++]);
  return order;
}

std::string TransferGraph::run(occlComm_t comm, uint32_t rank) const {
  std::vector<char> source(sourceBytes()), memory(receivedBytes(rank) + 1);
  fillSource(source.data());
  return run(comm, rank, source.data(), memory.data());
}

std::string TransferGraph::runInHeap(occlComm_t comm, uint32_t rank) const {
  void *source = nullptr, *memory = nullptr;
  if (occlMemAlloc(comm, sourceBytes(), &source) != occlSuccess ||
      occlMemAlloc(comm, receivedBytes(rank) + 1, &memory) != occlSuccess)
    return std::string("occlMemAlloc: ") + occlGetLastError();
  fillSource(static_cast<char *>(source));
  return run(comm, rank, static_cast<char *>(source), static_cast<char *>(memory));
}

std::string TransferGraph::run(occlComm_t comm, uint32_t rank, const char *source,
                               char *memory) const {
  const std::vector<Step> order = orderOf(rank, memory);
  if (occlGroupStart() != occlSuccess)
    return occlGetLastError();
  for (const auto &[isSend, edge, to] : order) {
    const occlResult_t result =
        isSend ? occlSend(source + edge->from, edge->count, edge->type, edge->destination, comm,
                          nullptr)
               : occlRecv(to, edge->count, edge->type, edge->source, comm, nullptr);
    if (result != occlSuccess)
      return std::string("a call in the group: ") + occlGetLastError();
  }
  if (occlGroupEnd() != occlSuccess)
    return std::string("occlGroupEnd: ") + occlGetLastError();
  for (const auto &[isSend, edge, to] : order)
    if (!isSend && std::memcmp(to, source + edge->from, edge->bytes) != 0)
      return "wrong data from rank " + std::to_string(edge->source) + ", " +
             std::to_string(edge->bytes) + " bytes";
  return {};
}

} // namespace occl::communicator::testing
