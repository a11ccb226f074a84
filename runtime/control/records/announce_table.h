// A rank's announce cells by collective id. Its owner gives cells to ids and takes them back; all
// ranks look ids up meanwhile.
//
// The index is a hash table of cell numbers, by open addressing. A number is taken out by moving
// others up, so looking up costs the same after weeks of comings and goings. Who looks up while
// numbers move, and finds nothing, looks again: a version counts the moves, odd while one goes on.
#pragma once

#include "runtime/control/records/announce.h"
#include "runtime/sync/atomic.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace occl::transport {

/// A view: the memory is the caller's. Whatever it holds, looking up ends after a bounded number of
/// steps and touches nothing but cells and index. Thread safety: any, of any rank.
class AnnounceTable {
public:
  AnnounceTable() = default;
  /// The number of cells is a power of two; `index` has indexBytes() and is a cache line's
  /// multiple. Memory that is zero is an empty table.
  AnnounceTable(std::span<AnnounceCell> cells, std::byte *index);
  static constexpr uint64_t indexBytes(uint64_t numCells) {
    return kPlacesOffset + numCells * kPlacesPerCell * sizeof(Place);
  }

  /// The collective's cell; nullptr if it has none or is about to lose it, or if the table is
  /// damaged. Who has made its own cell of that collective Active before may use it until that is
  /// Ready.
  const AnnounceCell *find(uint64_t collective) const;
  /// What the owner says of the collective's cell, Vacant if it has none; nothing if numbers moved
  /// all the time.
  std::optional<CellLife> lifeOf(uint64_t collective) const;
  /// The cell's `first`; kUnknown if there is no cell; nothing if the owner may be about to give it
  /// back, or numbers moved all the time.
  std::optional<uint64_t> firstOf(uint64_t collective) const;

private:
  friend class AnnounceOwner;
  using Place = Atomic<uint32_t>; // a cell's number + 1, or 0

  static constexpr uint64_t kPlacesOffset = 64; // behind the version
  static constexpr uint64_t kPlacesPerCell = 2;

  struct Found {
    AnnounceCell *cell = nullptr;
    CellLife life;
    bool isEndless = false; // no place is free: the index is damaged
  };
  std::optional<Found> search(uint64_t collective) const;
  Found probe(uint64_t collective) const;
  uint64_t homeOf(uint64_t collective) const;

  std::span<AnnounceCell> cells;
  std::span<Place> places;
  Atomic<uint32_t> *version = nullptr;
};

/// The owner's side of a table that was empty. Thread safety: one thread at a time.
class AnnounceOwner {
public:
  explicit AnnounceOwner(const AnnounceTable &table) : table(table) {}

  uint32_t numFree() const {
    return static_cast<uint32_t>(table.cells.size() - numUsed + freed.size());
  }
  /// An Active cell for `collective`, which has none; nullptr if all are taken, or the index is
  /// damaged. Others can find it. If it throws there is no memory, and nothing has changed.
  AnnounceCell *take(uint64_t collective);
  /// Nobody refers to the cell any more; it is Vacant then.
  void giveBack(AnnounceCell &cell);

private:
  void removeFromIndex(uint64_t place);
  /// Where the index has `number`, 0 being a free place, from the collective's home on.
  std::optional<uint64_t> placeOf(uint32_t number, uint64_t collective) const;

  AnnounceTable table;
  uint32_t numUsed = 0;        // cells that have ever been
  std::vector<uint32_t> freed; // of these, those that are free; the last one first
};

} // namespace occl::transport
