// What every location holds, in one alias mode: which contributions, and since when. Constant time
// and 16 bytes a location.
#pragma once

#include "compiler/frontend/memory/Layout.h"
#include "compiler/frontend/memory/Trace.h"

#include <span>
#include <vector>

namespace occl::frontend {

/// A multiset of contributions as the sum of their keys: equal sets have equal sums, and other sets
/// almost surely others (nothing depends on it but the quality of errors: the plan is verified
/// again, with secret keys).
struct ContributionSum {
  uint64_t keys = 0;
  uint32_t count = 0; // saturates

  ContributionSum &operator+=(const ContributionSum &other) {
    keys += other.keys;
    count = count + other.count < count ? ~0u : count + other.count;
    return *this;
  }
  bool operator==(const ContributionSum &) const = default;
};

/// Chunk `chunk` of rank `rank`'s input.
struct Contribution {
  uint32_t rank = 0;
  uint32_t chunk = 0;

  auto operator<=>(const Contribution &) const = default;
};

inline ContributionSum contribution(uint32_t rank, uint32_t chunk) {
  uint64_t key = (static_cast<uint64_t>(rank) << 32 | chunk) + 0x9e3779b97f4a7c15;
  key = (key ^ key >> 30) * 0xbf58476d1ce4e5b9;
  key = (key ^ key >> 27) * 0x94d049bb133111eb;
  return {key ^ key >> 31, 1};
}

/// The contribution that a sum of one consists of: contribution() backwards.
inline Contribution soleContribution(const ContributionSum &sum) {
  uint64_t key = sum.keys;
  key = (key ^ key >> 31 ^ key >> 62) * 0x319642b2d24d8ec3;
  key = (key ^ key >> 27 ^ key >> 54) * 0x96de1b173f119089;
  key = (key ^ key >> 30 ^ key >> 60) - 0x9e3779b97f4a7c15;
  return {static_cast<uint32_t>(key >> 32), static_cast<uint32_t>(key)};
}

class Memory {
public:
  /// `isDefined` says which input locations hold data at entry: all, if it is empty.
  Memory(const Layout &layout, bool inPlace, const std::vector<bool> &isDefined)
      : layout(layout), inPlace(inPlace) {
    cells.resize(layout.numLocations());
    for (uint32_t rank = 0; rank < layout.numRanks(); ++rank)
      for (uint32_t chunk = 0; chunk < layout.inputChunks()[rank]; ++chunk) {
        LocationId location = layout.first({BufferKind::Input, 0, rank, chunk});
        if (isDefined.empty() || isDefined[location])
          cells[cellOf(location)] = Cell(contribution(rank, chunk), kEntry);
      }
  }

  bool isInPlace() const { return inPlace; }
  /// After the layout got another scratch.
  void grow() { cells.resize(layout.numLocations()); }

  Version version(LocationId location) const { return cells[cellOf(location)].version; }
  ContributionSum content(LocationId location) const {
    const Cell &cell = cells[cellOf(location)];
    return {cell.keys, cell.count};
  }
  /// The latest version among `count` locations, and the first location that has it.
  std::pair<Version, LocationId> latest(LocationId first, uint32_t count) const {
    std::pair<Version, LocationId> result{version(first), first};
    for (LocationId location = first; location < first + count; ++location)
      if (version(location) > result.first)
        result = {version(location), location};
    return result;
  }

  /// Writes the sums of `count` locations each of the sources. A destination is disjoint from each
  /// source or the same.
  void write(std::span<const LocationId> sources, LocationId destination, uint32_t count,
             Version version) {
    for (uint32_t i = 0; i < count; ++i) {
      ContributionSum sum;
      for (LocationId source : sources)
        sum += content(source + i);
      cells[cellOf(destination + i)] = Cell(sum, version);
    }
  }

private:
  LocationId cellOf(LocationId location) const {
    return inPlace ? layout.inPlaceAlias(location) : location;
  }

  struct Cell {
    Cell() = default;
    Cell(const ContributionSum &content, Version version)
        : keys(content.keys), count(content.count), version(version) {}

    uint64_t keys = 0;
    uint32_t count = 0;
    Version version = kUnwritten;
  };
  static_assert(sizeof(Cell) == 16); // a few in a cache line, none across two
  const Layout &layout;
  bool inPlace;
  std::vector<Cell> cells;
};

} // namespace occl::frontend
