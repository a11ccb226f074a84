// What a rank says to the others while a communicator of several machines shrinks. It has one
// writer, its owner; ranks of other machines have copies, in which it is never half old.
#pragma once

#include "runtime/sync/atomic.h"
#include "runtime/sync/sequence_lock.h"

#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <type_traits>

namespace occl::transport {

/// A set of ranks, bit by bit.
using RankBits = std::array<uint64_t, 1024 / 64>;

inline bool contains(const RankBits &set, uint32_t rank) { return set[rank / 64] >> rank % 64 & 1; }
inline void add(RankBits &set, uint32_t rank) { set[rank / 64] |= uint64_t{1} << rank % 64; }

/// The smaller group that goes on.
struct ShrinkDecision {
  uint64_t attempt = 0; // in which its members have formed it
  RankBits members{};

  bool operator==(const ShrinkDecision &) const = default;
};

/// A rank's part in a sequence of choices: see daemon::Consensus.
struct ConsensusRecord {
  struct Chosen {
    uint64_t instance = 0;
    ShrinkDecision value;
  };
  static constexpr size_t kHistory = 4;

  uint64_t instance = 0; // of the choice that is being made; 0: none yet
  // As a voter, in this instance.
  uint64_t promised = 0; // answers no smaller ballot
  uint64_t accepted = 0; // 0: none
  ShrinkDecision acceptedValue;
  // As a proposer.
  uint64_t ballot = 0; // 0: none
  uint64_t isAccepting = 0;
  ShrinkDecision proposal;                // valid if isAccepting
  std::array<Chosen, kHistory> history{}; // by instance % kHistory
};

/// Little endian on the wire.
struct ShrinkRecord {
  uint64_t call = 0;      // which shrinking of this communicator; from 1 on
  uint64_t attempt = 0;   // the last one that the rank takes part in; from 1 on, through all calls
  uint64_t joined = 0;    // the last one whose smaller group it has joined
  uint64_t abandoned = 0; // the last one in which it is not waited for any more
  uint64_t late = 0;      // the last attempt in which it waits for nobody who has not come
  uint64_t port = 0;      // where it listens in this attempt
  uint64_t segmentBytes = 0;
  RankBits excluded{};    // whom it wants to be left out
  RankBits unreachable{}; // of whom it sees that they are gone
  uint64_t proposing = 0; // the last attempt whose members it has named
  RankBits proposed{};    // these; it is the first of them
  ConsensusRecord consensus;
};
static_assert(std::is_trivially_copyable_v<ShrinkRecord> && sizeof(ShrinkRecord) % 8 == 0);

/// In the segment of each rank, and in its mirrors.
class ShrinkCell {
public:
  /// One thread at a time.
  void store(const ShrinkRecord &record) {
    const auto from = std::bit_cast<std::array<uint64_t, kWords>>(record);
    lock.write([&] {
      for (size_t w = 0; w < kWords; ++w)
        words[w].store(from[w], std::memory_order_relaxed);
    });
  }
  /// Nothing if the owner is writing, or has died while it was. `version` grows with each store.
  std::optional<ShrinkRecord> load(uint64_t *version = nullptr) const {
    std::array<uint64_t, kWords> copy;
    const auto read = lock.read([&] {
      for (size_t w = 0; w < kWords; ++w)
        copy[w] = words[w].load(std::memory_order_relaxed);
    });
    if (!read)
      return std::nullopt;
    if (version)
      *version = *read;
    return std::bit_cast<ShrinkRecord>(copy);
  }

private:
  static constexpr size_t kWords = sizeof(ShrinkRecord) / sizeof(uint64_t);

  SequenceLock lock;
  std::array<Atomic<uint64_t>, kWords> words{};
};

} // namespace occl::transport
