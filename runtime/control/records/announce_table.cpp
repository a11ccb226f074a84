// The index from collectives to announce cells: one owner writes, all ranks read.
#include "runtime/control/records/announce_table.h"

namespace occl::transport {

namespace {

/// Mixes all bits of an id into the low ones: users number collectives 0, 1, 2 or by hashes alike.
uint64_t mix(uint64_t id) {
  id ^= id >> 33;
  id *= 0xff51afd7ed558ccdull;
  id ^= id >> 33;
  return id;
}

} // namespace

AnnounceTable::AnnounceTable(std::span<AnnounceCell> cells, std::byte *index)
    : cells(cells),
      places(reinterpret_cast<Place *>(index + kPlacesOffset), cells.size() * kPlacesPerCell),
      version(reinterpret_cast<Atomic<uint32_t> *>(index)) {}

uint64_t AnnounceTable::homeOf(uint64_t collective) const {
  return mix(collective) & (places.size() - 1);
}

AnnounceTable::Found AnnounceTable::probe(uint64_t collective) const {
  const uint64_t home = homeOf(collective);
  for (uint64_t i = 0; i < places.size(); ++i) {
    uint32_t number = places[(home + i) & (places.size() - 1)].load(std::memory_order_acquire);
    // A free place ends the search; a number that cannot be has the same effect.
    if (number == 0 || number > cells.size())
      return {};
    AnnounceCell &cell = cells[number - 1];
    // The cell may go to another collective meanwhile: then its generation changes.
    CellLife life = cell.readLife();
    if (life.phase != CellPhase::Vacant &&
        cell.collective.load(std::memory_order_acquire) == collective &&
        CellLife::unpack(cell.life.load(std::memory_order_relaxed)).generation == life.generation)
      return {&cell, life};
  }
  return {nullptr, {}, true};
}

std::optional<AnnounceTable::Found> AnnounceTable::search(uint64_t collective) const {
  constexpr int kAttempts = 64; // the owner may have been stopped in the middle of a move
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    // An odd version, or one that has changed, means that numbers moved meanwhile.
    uint32_t before = version->load(std::memory_order_acquire);
    Found found = probe(collective);
    if (found.cell)
      return found;
    if (found.isEndless)
      break;
    threadFence(std::memory_order_acquire);
    if (before % 2 == 0 && version->load(std::memory_order_relaxed) == before)
      return Found{};
  }
  return std::nullopt;
}

const AnnounceCell *AnnounceTable::find(uint64_t collective) const {
  auto found = search(collective);
  return found && found->life.phase != CellPhase::Leaving ? found->cell : nullptr;
}

std::optional<CellLife> AnnounceTable::lifeOf(uint64_t collective) const {
  auto found = search(collective);
  return found ? std::optional(found->life) : std::nullopt;
}

std::optional<uint64_t> AnnounceTable::firstOf(uint64_t collective) const {
  auto found = search(collective);
  if (!found)
    return std::nullopt;
  if (!found->cell)
    return AnnounceCell::kUnknown;
  uint64_t first = found->cell->first.load(std::memory_order_acquire);
  if (first >= CellLife::kOrdinals)
    first = AnnounceCell::kUnknown; // nobody counts so far
  // The word counts only if the cell has stayed that of the collective.
  CellLife life = found->cell->readLife();
  bool stays = life.generation == found->life.generation && life.phase != CellPhase::Vacant &&
               life.phase != CellPhase::Leaving;
  return stays ? std::optional(first) : std::nullopt;
}

std::optional<uint64_t> AnnounceOwner::placeOf(uint32_t number, uint64_t collective) const {
  const uint64_t mask = table.places.size() - 1, home = table.homeOf(collective);
  for (uint64_t i = 0; i <= mask; ++i)
    if (uint64_t place = (home + i) & mask;
        table.places[place].load(std::memory_order_relaxed) == number)
      return place;
  return std::nullopt;
}

AnnounceCell *AnnounceOwner::take(uint64_t collective) {
  const auto place = placeOf(0, collective);
  if (!place)
    return nullptr;
  // Cells that were given back are used again before untouched ones.
  uint32_t number = numUsed;
  if (!freed.empty()) {
    number = freed.back();
    freed.pop_back();
  } else if (numUsed < table.cells.size()) {
    // Room for each that is given back, which must not fail.
    if (freed.capacity() == numUsed)
      freed.reserve(2 * size_t{numUsed} + 1);
    ++numUsed;
  } else {
    return nullptr;
  }
  // The cell is complete before its number makes it visible.
  AnnounceCell &cell = table.cells[number];
  cell.renew();
  cell.collective.store(collective, std::memory_order_relaxed);
  cell.enter(CellPhase::Active);
  table.places[*place].store(number + 1, std::memory_order_release);
  return &cell;
}

void AnnounceOwner::giveBack(AnnounceCell &cell) {
  auto number = static_cast<uint32_t>(&cell - table.cells.data());
  // Lookups fail first; the new generation tells readers that hold the cell.
  if (auto place = placeOf(number + 1, cell.collective.load(std::memory_order_relaxed)))
    removeFromIndex(*place);
  CellLife next{CellPhase::Vacant, cell.readLife().generation + 1, 0};
  cell.life.store(next.packed(), std::memory_order_release);
  freed.push_back(number);
}

void AnnounceOwner::removeFromIndex(uint64_t place) {
  const uint64_t mask = table.places.size() - 1;
  // While the version is odd, a reader that finds nothing looks again.
  table.version->store(table.version->load(std::memory_order_relaxed) + 1,
                       std::memory_order_relaxed);
  threadFence(std::memory_order_release);
  // What follows without a gap moves up, unless that is before its home.
  uint64_t gap = place;
  for (uint64_t next = (gap + 1) & mask; next != place; next = (next + 1) & mask) {
    uint32_t number = table.places[next].load(std::memory_order_relaxed);
    if (number == 0 || number > table.cells.size())
      break;
    uint64_t home =
        table.homeOf(table.cells[number - 1].collective.load(std::memory_order_relaxed));
    if (((next - home) & mask) < ((next - gap) & mask))
      continue;
    table.places[gap].store(number, std::memory_order_release);
    gap = next;
  }
  table.places[gap].store(0, std::memory_order_relaxed);
  table.version->store(table.version->load(std::memory_order_relaxed) + 1,
                       std::memory_order_release);
}

} // namespace occl::transport
