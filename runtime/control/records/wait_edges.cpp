// Publishes and reads the waits of a rank, under a sequence lock.
#include "runtime/control/records/wait_edges.h"

#include "runtime/sync/atomic.h"

#include <algorithm>
#include <array>

namespace occl::transport {

namespace {

using Words = std::array<uint64_t, 6>;

Words encode(const WaitEdge &edge) {
  return {edge.collective,
          edge.ordinal,
          uint64_t{edge.block} << 32 | edge.instruction,
          uint64_t{static_cast<uint32_t>(edge.reason)} << 32 | edge.peer,
          edge.thing,
          edge.since};
}

WaitEdge decode(const Words &words) {
  return {words[0],
          words[1],
          static_cast<uint32_t>(words[2] >> 32),
          static_cast<uint32_t>(words[2]),
          static_cast<WaitReason>(words[3] >> 32),
          static_cast<uint32_t>(words[3]),
          static_cast<uint32_t>(words[4]),
          words[5]};
}

} // namespace

const char *toString(WaitReason reason) {
  // Reports say: rank 0 waits for rank 1, and in parentheses this.
  switch (reason) {
  case WaitReason::Announce:
    return "its submission";
  case WaitReason::Data:
    return "data";
  case WaitReason::Credit:
    return "a free slot";
  case WaitReason::Dependency:
    return "another thread block";
  case WaitReason::Signal:
    return "a signal";
  case WaitReason::Begin:
    return "the end of its invocation before";
  }
  return "something unknown";
}

bool WaitEdgeBoard::holds(std::span<const WaitEdge> edges) const {
  if (numEdges.load(std::memory_order_relaxed) != edges.size())
    return false;
  for (size_t i = 0; i < edges.size(); ++i) {
    Words wanted = encode(edges[i]);
    for (uint32_t w = 0; w < kWordsPerEdge; ++w)
      if (words[i * kWordsPerEdge + w].load(std::memory_order_relaxed) != wanted[w])
        return false;
  }
  return true;
}

void WaitEdgeBoard::publish(std::span<const WaitEdge> edges) {
  edges = edges.first(std::min<size_t>(edges.size(), kMaxEdges));
  // An unchanged version tells readers that nothing has moved.
  if (holds(edges))
    return;
  lock.write([&] {
    for (size_t i = 0; i < edges.size(); ++i) {
      Words encoded = encode(edges[i]);
      for (uint32_t w = 0; w < kWordsPerEdge; ++w)
        words[i * kWordsPerEdge + w].store(encoded[w], std::memory_order_relaxed);
    }
    numEdges.store(static_cast<uint32_t>(edges.size()), std::memory_order_relaxed);
  });
}

WaitSnapshot WaitEdgeBoard::read() const {
  WaitSnapshot snapshot;
  auto version = lock.read([&] {
    // The lock may run this several times.
    snapshot.edges.clear();
    snapshot.confirmations = confirmations.load(std::memory_order_acquire);
    // The owner may be damaged, so its count is not trusted.
    uint32_t count = std::min(numEdges.load(std::memory_order_relaxed), kMaxEdges);
    for (uint32_t i = 0; i < count; ++i) {
      Words encoded;
      for (uint32_t w = 0; w < kWordsPerEdge; ++w)
        encoded[w] = words[i * kWordsPerEdge + w].load(std::memory_order_relaxed);
      snapshot.edges.push_back(decode(encoded));
    }
  });
  if (!version)
    return {};
  snapshot.version = *version;
  return snapshot;
}

} // namespace occl::transport
