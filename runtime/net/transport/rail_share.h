// Which of several connections the next long frame of a pair takes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace occl::net {

/// Connections of a pair: each is a rail.
inline constexpr size_t kMostRails = 8;

/// Equal bytes for rails that are equally fast, and to a slower one what it takes.
class RailShare {
public:
  /// Of a rail: what waits there, or that it has no room.
  static constexpr uint64_t kNoRoom = ~uint64_t{0};

  /// The rail with the fewest bytes, of those whose backlog is not longer than the shortest by more
  /// than kSlack; the number of rails if none has room.
  size_t choose(std::span<const uint64_t> backlogs) const;
  /// That were given to it.
  void count(size_t rail, uint64_t bytes, size_t numRails);

  /// By less the queues of equal rails differ, whose receiver reads one after the other.
  static constexpr uint64_t kSlack = 256 << 10;
  /// A rail that was passed over for long has no more to make up for.
  static constexpr uint64_t kMostToMakeUp = 1 << 20;

private:
  std::array<uint64_t, kMostRails> given{};
};

} // namespace occl::net
