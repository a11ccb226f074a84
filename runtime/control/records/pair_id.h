// Ids of the sequences of transfers between two ranks, and of partitioned collectives, where those
// of the user's collectives are expected.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace occl::transport {

/// An ordered one.
struct Pair {
  uint32_t source = 0, destination = 0;
};

/// Those of the user are smaller.
inline constexpr uint64_t kFirstReservedId = uint64_t{1} << 63;

inline constexpr uint32_t kPairRankBits = 10;
inline constexpr uint64_t kFirstPairId =
    ~uint64_t{0} - (uint64_t{1} << (2 * kPairRankBits + 1)) + 1;

constexpr uint64_t idOf(Pair pair) {
  return kFirstPairId + (uint64_t{pair.source} << kPairRankBits) + pair.destination;
}

/// Nothing if it is none.
constexpr std::optional<Pair> pairOf(uint64_t id) {
  if (id < kFirstPairId || id - kFirstPairId >= uint64_t{1} << (2 * kPairRankBits))
    return std::nullopt;
  const auto packed = static_cast<uint32_t>(id - kFirstPairId);
  return Pair{packed >> kPairRankBits, packed & ((1u << kPairRankBits) - 1)};
}

/// Those of its partitioned requests lie before.
inline constexpr uint64_t kFirstPartitionedId = kFirstPairId - (uint64_t{1} << (2 * kPairRankBits));

constexpr uint64_t partitionedIdOf(Pair pair) {
  return kFirstPartitionedId + (idOf(pair) - kFirstPairId);
}
constexpr std::optional<Pair> partitionedPairOf(uint64_t id) {
  if (id < kFirstPartitionedId || id >= kFirstPairId)
    return std::nullopt;
  return pairOf(kFirstPairId + (id - kFirstPartitionedId));
}
/// Those of the communicator's partitioned collectives begin with the first.
constexpr uint64_t partitionedIdOf(uint64_t number) { return kFirstReservedId + number; }
constexpr std::optional<uint64_t> partitionedCollectiveOf(uint64_t id) {
  if (id < kFirstReservedId || id >= kFirstPartitionedId)
    return std::nullopt;
  return id - kFirstReservedId;
}
/// "partitioned request 3", or "id 7" of the user's.
inline std::string describeSequence(uint64_t id) {
  const auto number = partitionedCollectiveOf(id);
  return number ? "partitioned request " + std::to_string(*number) : "id " + std::to_string(id);
}
/// "epoch 3" of a partitioned collective, whose first is 1; else "invocation 2".
inline std::string describeInvocation(uint64_t id, uint64_t ordinal) {
  return partitionedCollectiveOf(id) ? "epoch " + std::to_string(ordinal + 1)
                                     : "invocation " + std::to_string(ordinal);
}
/// No collective's.
constexpr bool isOfPair(uint64_t id) { return pairOf(id) || partitionedPairOf(id); }

/// Of the groups of transfers that have a request; no pair's.
inline constexpr uint64_t kTransferGroups = kFirstPairId + (uint64_t{1} << (2 * kPairRankBits));

/// "from rank 0 to rank 1".
inline std::string describe(Pair pair) {
  return "from rank " + std::to_string(pair.source) + " to rank " +
         std::to_string(pair.destination);
}

} // namespace occl::transport
