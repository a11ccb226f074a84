#include "runtime/transport/announce.h"

namespace occl::transport {

namespace {

static_assert(sizeof(AnnounceRecord) == 64);

constexpr uint64_t kOffsetMask = (uint64_t{1} << 48) - 1;

/// Mixes all bits of an id into the low ones: users number collectives 0, 1, 2 or by hashes alike.
uint64_t mix(uint64_t id) {
  id ^= id >> 33;
  id *= 0xff51afd7ed558ccdull;
  id ^= id >> 33;
  return id;
}

} // namespace

void AnnounceCell::publish(uint64_t ordinal, uint64_t arenaOffset, const CollectiveTraits &traits,
                           const BufferAddresses &buffers, Urgency urgency) {
  AnnounceRecord &record = records[ordinal % kRecords];
  record.packedUrgency.store(AnnounceRecord::pack(urgency), std::memory_order_relaxed);
  record.planHash = traits.planHash;
  record.count = traits.count;
  record.dataType = traits.dataType & 0xff;
  record.op = traits.op & 0xff;
  record.blockOffset = arenaOffset & kOffsetMask;
  record.buffers = buffers;
  record.sequence.store(ordinal + 1, std::memory_order_release);
}

void AnnounceCell::publishLease(uint64_t arenaOffset, const CollectiveTraits &traits) {
  lease.arenaOffset = arenaOffset;
  lease.traits = traits;
  lease.valid.store(1, std::memory_order_release);
}

const BlockLease *AnnounceCell::findLease(const CollectiveTraits &traits) const {
  return lease.valid.load(std::memory_order_acquire) != 0 && lease.traits == traits ? &lease
                                                                                    : nullptr;
}

const AnnounceRecord *AnnounceCell::find(uint64_t ordinal) const {
  const AnnounceRecord &record = records[ordinal % kRecords];
  return record.sequence.load(std::memory_order_acquire) == ordinal + 1 ? &record : nullptr;
}

std::optional<Urgency> AnnounceCell::urgencyOf(uint64_t ordinal) const {
  const AnnounceRecord *record = find(ordinal);
  return record ? std::optional(record->urgency()) : std::nullopt;
}

AnnounceCell *AnnounceTable::findOrInsert(uint64_t collective) {
  uint64_t start = mix(collective);
  for (uint64_t i = 0; i < cells.size(); ++i) {
    AnnounceCell &cell = cells[(start + i) & (cells.size() - 1)];
    if (cell.used.load(std::memory_order_relaxed) == 0) {
      cell.collective = collective;
      cell.used.store(1, std::memory_order_release);
      return &cell;
    }
    if (cell.collective == collective)
      return &cell;
  }
  return nullptr;
}

const AnnounceCell *AnnounceTable::find(uint64_t collective) const {
  uint64_t start = mix(collective);
  for (uint64_t i = 0; i < cells.size(); ++i) {
    const AnnounceCell &cell = cells[(start + i) & (cells.size() - 1)];
    if (cell.used.load(std::memory_order_acquire) == 0)
      return nullptr;
    if (cell.collective == collective)
      return &cell;
  }
  return nullptr;
}

} // namespace occl::transport
