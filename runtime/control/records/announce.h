// Announce records: how a rank tells its peers that it has submitted an invocation of a collective,
// what it thinks the collective is, and where its connectors and buffers lie. Written only by the
// rank that owns the table, read by all.
//
// A cell belongs to one collective id until no rank can want anything of it any more
// (announce_table.h), and has a ring of records, one an invocation in flight. Record
// `ordinal % kRecords` is used again only when every rank that reads it has counted `ordinal` in
// its own cell's `done`, so a reader that has not finished the invocation reads a record that
// stays.
#pragma once

#include "runtime/sync/atomic.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace occl::transport {

/// What ranks must agree on: the signature of a call. count is in elements; dataType, op and kind
/// are the API's values. Kind and root are the plan's, and are there to be told.
struct CollectiveTraits {
  uint64_t planHash = 0;
  uint64_t count = 0;
  uint32_t dataType = 0;
  uint32_t op = 0;
  uint32_t kind = 0;
  uint32_t root = 0;

  bool operator==(const CollectiveTraits &) const = default;
};

/// Addresses of input, output and scratch, as the owner maps them: for ranks that share its address
/// space.
using BufferAddresses = std::array<uint64_t, 3>;

/// How urgent the owner finds an invocation.
struct Urgency {
  int32_t priority = 0;
  /// Submissions of the owner's device before it; it wraps around.
  uint32_t turn = 0;

  bool operator==(const Urgency &) const = default;
};

/// What a record says. A copy: whoever has written the record may be damaged and write it again
/// while it is looked at.
struct Announcement {
  /// Of the invocation's block, from the start of the arena, in bytes.
  uint64_t arenaOffset = 0;
  CollectiveTraits traits;
  BufferAddresses buffers{};
};

/// One cache line: a peer that binds the invocation reads no other.
class alignas(64) AnnounceRecord {
public:
  /// Each word is read once.
  Announcement read() const;
  Urgency urgency() const { return unpack(packedUrgency.load(std::memory_order_relaxed)); }

private:
  friend struct AnnounceCell;

  // An arena has at most 2^40 bytes.
  static constexpr unsigned kOffsetBits = 40, kTypeBits = 5, kOpBits = 3, kKindBits = 4,
                            kRootBits = 12;

  static uint64_t pack(Urgency urgency) {
    return uint64_t{static_cast<uint32_t>(urgency.priority)} << 32 | urgency.turn;
  }
  static Urgency unpack(uint64_t packed) {
    return {static_cast<int32_t>(packed >> 32), static_cast<uint32_t>(packed)};
  }

  Atomic<uint64_t> sequence{0};      // ordinal + 1 once all below is valid
  Atomic<uint64_t> packedUrgency{0}; // atomic for those who look without reading the invocation
  uint64_t planHash = 0, count = 0;
  /// Block's offset, data type, operation, kind, root. Stored whole: reading the line before would
  /// wait for it, if a peer has looked at it.
  uint64_t packedRest = 0;
  BufferAddresses buffers{};
};

/// Blocks of the owner's that the invocations of a sequence use which fit, in turn: known before,
/// so that a reader need not wait for an invocation's record. There are `kRecords` of each size,
/// which double from `smallest` to `largest` bytes, one after the other, the small ones first: what
/// small invocations read lies close together. The memory is used for nothing else as long as the
/// cell is the sequence's, and its lines carry flags that tell invocations and their traits apart:
/// a reader that relies on a ring which is out of date waits, and finds the record.
struct PrepostedRing {
  /// From the start of the arena; a multiple of kAlignment, less than 2^40.
  uint64_t arenaOffset = 0;
  uint64_t smallest = 0, largest = 0; // multiples of kAlignment; 0: there is none

  static constexpr uint64_t kAlignment = 128;
  static constexpr uint64_t kMostBlockBytes = uint64_t{1} << 30;

  /// 0: there is none.
  uint64_t packed() const;
  static PrepostedRing unpack(uint64_t word);
  /// Whether it can be what a rank means: another one may have written it.
  bool isSound(uint64_t arenaBytes) const;
  uint64_t bytes() const;
  /// Of the block of an invocation that needs so many, which fits.
  uint64_t blockBytes(uint64_t needed) const;
  /// Where the first one of such blocks lies, and that of invocation `ordinal`, from the start of
  /// the arena.
  uint64_t firstOffset(uint64_t needed) const;
  uint64_t offsetOf(uint64_t ordinal, uint64_t needed) const;
};

/// How far the owner is from giving a cell to another collective; see announce_cells.h.
enum class CellPhase : uint64_t { Vacant = 0, Active, Resting, Ready, Leaving };

/// What a cell's owner says of it, in one word.
struct CellLife {
  CellPhase phase = CellPhase::Vacant;
  /// Of the collectives that had the cell, counted modulo 2^20: a reader that has seen one of them
  /// does not take the next one for it.
  uint64_t generation = 0;
  /// Unless Active: invocations that the owner has submitted, all of them finished. Modulo 2^40.
  uint64_t ordinal = 0;

  static constexpr uint64_t kGenerations = uint64_t{1} << 20;
  static constexpr uint64_t kOrdinals = uint64_t{1} << 40;

  uint64_t packed() const {
    return static_cast<uint64_t>(phase) | (generation % kGenerations) << 4 |
           (ordinal % kOrdinals) << 24;
  }
  static CellLife unpack(uint64_t word) {
    return {static_cast<CellPhase>(word & 15), word >> 4 & (kGenerations - 1), word >> 24};
  }
  bool isAtRest(uint64_t after) const {
    return (phase == CellPhase::Resting || phase == CellPhase::Ready) &&
           ordinal == after % kOrdinals;
  }
};

struct AnnounceCell {
  static constexpr uint32_t kRecords = 8;
  static constexpr uint64_t kUnknown = ~uint64_t{0};

  /// A packed CellLife; `collective` is valid unless it is Vacant.
  alignas(64) Atomic<uint64_t> life{0};
  Atomic<uint64_t> collective{0};
  /// The first invocation that anybody may still ask for, as far as the owner knows: where a rank
  /// that knows nothing of the collective begins to count. kUnknown while the owner looks for it.
  Atomic<uint64_t> first{kUnknown};
  /// A packed PrepostedRing. Stored once while the cell is a sequence's.
  Atomic<uint64_t> ring{0};
  /// Invocations that this rank has finished: it neither reads nor writes memory of theirs any
  /// more.
  alignas(64) Atomic<uint64_t> done{0};
  /// Invocations that this rank has begun, so that others may access its buffers: the invocation
  /// before is done here, whatever it used. Only for collectives with direct access.
  Atomic<uint64_t> begun{0};
  AnnounceRecord records[kRecords];

  /// Owner only: makes the record of `ordinal` visible. Ring the readers' doorbells after it.
  /// `arenaOffset` is below 2^40. Of data type, operation, kind and root what is too large for its
  /// bits is told as the largest that they have, which stands for no type, operation or kind.
  void publish(uint64_t ordinal, uint64_t arenaOffset, const CollectiveTraits &traits,
               const BufferAddresses &buffers = {}, Urgency urgency = {});
  CellLife readLife() const { return CellLife::unpack(life.load(std::memory_order_acquire)); }
  /// Owner only: goes on to another phase of the same generation.
  void enter(CellPhase phase, uint64_t ordinal = 0) {
    life.store(CellLife{phase, readLife().generation, ordinal}.packed(), std::memory_order_release);
  }
  /// Owner only: makes the cell what it is for a collective before its first invocation.
  void renew();
  /// Owner only: the invocation with which this rank begins to count.
  void beginAt(uint64_t ordinal);
  /// The record of `ordinal` if it has been published, else nullptr.
  const AnnounceRecord *find(uint64_t ordinal) const;
  /// For any rank, whether or not the owner waits for it before the record is used again: whether
  /// `ordinal` has been published.
  bool hasPublished(uint64_t ordinal) const {
    return sequenceOf(ordinal).load(std::memory_order_acquire) > ordinal;
  }
  /// Likewise: how urgent the owner finds it; nothing if its record has been used again. Meanwhile
  /// it may be what the owner says of a later invocation.
  std::optional<Urgency> urgencyOf(uint64_t ordinal) const;

private:
  const Atomic<uint64_t> &sequenceOf(uint64_t ordinal) const {
    return records[ordinal % kRecords].sequence;
  }
};

} // namespace occl::transport
