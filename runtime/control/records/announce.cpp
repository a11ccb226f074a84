// Packs and reads announce records, each of which is one cache line.
#include "runtime/control/records/announce.h"

#include "runtime/sync/read_once.h"

#include <bit>

namespace occl::transport {

namespace {

static_assert(sizeof(AnnounceRecord) == 64);

/// Fields of a word, from its low end on.
class Packer {
public:
  Packer &add(uint64_t value, unsigned bits) {
    // A value that does not fit becomes the largest, which stands for nothing.
    const uint64_t most = (uint64_t{1} << bits) - 1;
    word |= (value < most ? value : most) << used;
    used += bits;
    return *this;
  }
  uint64_t word = 0;

private:
  unsigned used = 0;
};

class Unpacker {
public:
  explicit Unpacker(uint64_t word) : word(word) {}
  uint64_t next(unsigned bits) {
    const uint64_t value = word & ((uint64_t{1} << bits) - 1);
    word >>= bits;
    return value;
  }

private:
  uint64_t word;
};

} // namespace

uint64_t PrepostedRing::packed() const {
  if (largest == 0)
    return 0;
  return Packer()
      .add(arenaOffset, 40)
      .add(smallest / kAlignment, 16)
      .add(std::bit_width(largest / smallest), 8)
      .word;
}

PrepostedRing PrepostedRing::unpack(uint64_t word) {
  Unpacker fields(word);
  PrepostedRing ring;
  ring.arenaOffset = fields.next(40);
  const uint64_t smallest = fields.next(16) * kAlignment, numSizes = fields.next(8);
  // Another process may have damaged the word, so the sizes are kept in bounds.
  if (numSizes > 0 && numSizes <= 16 && smallest << (numSizes - 1) <= kMostBlockBytes) {
    ring.smallest = smallest;
    ring.largest = smallest << (numSizes - 1);
  }
  return ring;
}

bool PrepostedRing::isSound(uint64_t arenaBytes) const {
  return largest != 0 && arenaOffset % kAlignment == 0 && arenaOffset <= arenaBytes &&
         bytes() <= arenaBytes - arenaOffset;
}

uint64_t PrepostedRing::bytes() const { return AnnounceCell::kRecords * (2 * largest - smallest); }

uint64_t PrepostedRing::blockBytes(uint64_t needed) const {
  return needed <= smallest ? smallest : smallest << std::bit_width((needed - 1) / smallest);
}

uint64_t PrepostedRing::firstOffset(uint64_t needed) const {
  return arenaOffset + AnnounceCell::kRecords * (blockBytes(needed) - smallest);
}

uint64_t PrepostedRing::offsetOf(uint64_t ordinal, uint64_t needed) const {
  return firstOffset(needed) + ordinal % AnnounceCell::kRecords * blockBytes(needed);
}

void AnnounceCell::publish(uint64_t ordinal, uint64_t arenaOffset, const CollectiveTraits &traits,
                           const BufferAddresses &buffers, Urgency urgency) {
  // All words lie in one line, and the sequence makes the others valid.
  AnnounceRecord &record = records[ordinal % kRecords];
  record.packedUrgency.store(AnnounceRecord::pack(urgency), std::memory_order_relaxed);
  record.planHash = traits.planHash;
  record.count = traits.count;
  record.packedRest = Packer()
                          .add(arenaOffset, AnnounceRecord::kOffsetBits)
                          .add(traits.dataType, AnnounceRecord::kTypeBits)
                          .add(traits.op, AnnounceRecord::kOpBits)
                          .add(traits.kind, AnnounceRecord::kKindBits)
                          .add(traits.root, AnnounceRecord::kRootBits)
                          .word;
  record.buffers = buffers;
  // Release, as readers that see the sequence read the words before it.
  record.sequence.store(ordinal + 1, std::memory_order_release);
}

Announcement AnnounceRecord::read() const {
  Announcement said;
  Unpacker rest(readOnce(packedRest));
  said.arenaOffset = rest.next(kOffsetBits);
  said.traits = {readOnce(planHash), readOnce(count)};
  said.traits.dataType = static_cast<uint32_t>(rest.next(kTypeBits));
  said.traits.op = static_cast<uint32_t>(rest.next(kOpBits));
  said.traits.kind = static_cast<uint32_t>(rest.next(kKindBits));
  said.traits.root = static_cast<uint32_t>(rest.next(kRootBits));
  for (size_t i = 0; i < buffers.size(); ++i)
    said.buffers[i] = readOnce(buffers[i]);
  return said;
}

void AnnounceCell::renew() {
  // No order is needed: the cell becomes visible with its phase, by a release.
  for (AnnounceRecord &record : records)
    record.sequence.store(0, std::memory_order_relaxed);
  ring.store(0, std::memory_order_relaxed);
  done.store(0, std::memory_order_relaxed);
  begun.store(0, std::memory_order_relaxed);
  first.store(kUnknown, std::memory_order_relaxed);
}

void AnnounceCell::beginAt(uint64_t ordinal) {
  done.store(ordinal, std::memory_order_release);
  begun.store(ordinal, std::memory_order_release);
  first.store(ordinal, std::memory_order_release);
}

const AnnounceRecord *AnnounceCell::find(uint64_t ordinal) const {
  const AnnounceRecord &record = records[ordinal % kRecords];
  return record.sequence.load(std::memory_order_acquire) == ordinal + 1 ? &record : nullptr;
}

std::optional<Urgency> AnnounceCell::urgencyOf(uint64_t ordinal) const {
  const AnnounceRecord *record = find(ordinal);
  return record ? std::optional(record->urgency()) : std::nullopt;
}

} // namespace occl::transport
