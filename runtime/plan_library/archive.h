// The archive of plans: its index, and the plans' bytes. algorithms/compile_plans.py describes it.
#pragma once

#include "runtime/base/status.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace occl::plan_library {

/// A plan of the archive.
struct Entry {
  std::string planClass; // "host-registered", "host-ordinary", "device-..."
  std::string collective;
  uint32_t numRanks = 0;
  uint64_t maxBytes = 0;                // of one part that it is chosen for; ~0: any
  std::string algorithm;                // with its parameters, as in the tables
  uint32_t blob = 0;                    // where it is
  uint64_t firstByte = 0, numBytes = 0; // in the unpacked blob
};

/// The blob that plans were taken from last, as far as it is unpacked: to unpack a plan is to unpack
/// those before it. One thread at a time.
class UnpackedBlob {
public:
  UnpackedBlob();
  ~UnpackedBlob();

private:
  friend class Archive;
  struct Decoder;
  static constexpr uint32_t kNone = ~0u;

  /// False: no memory.
  bool begin(uint32_t newBlob, std::span<const uint8_t> packed);
  /// Unpacks up to this byte of so many. False: the blob is damaged.
  bool reach(uint64_t end, uint64_t numBytes);

  uint32_t blob = kNone;
  std::string bytes;
  std::unique_ptr<Decoder> decoder; // null: it is at its end
};

/// Immutable; any thread.
class Archive {
public:
  /// InternalError if the bytes, which outlive it, are no archive, or a damaged one.
  static StatusOr<Archive> read(std::span<const uint8_t> bytes);

  /// Entries of a class, collective and number of ranks come smallest sizes first.
  const std::vector<Entry> &entries() const { return all; }

  /// The CBOR of the plan of an entry, which is in `unpacked` until that is used again.
  /// InternalError if the archive is damaged there; SystemError.
  StatusOr<std::string_view> planOf(const Entry &entry, UnpackedBlob &unpacked) const;

private:
  struct Blob {
    std::span<const uint8_t> packed;
    uint64_t numBytes = 0; // when it is unpacked
  };

  Status readIndex(std::string_view index, std::span<const uint8_t> packed);

  std::vector<Blob> blobs;
  std::vector<Entry> all;
};

} // namespace occl::plan_library
