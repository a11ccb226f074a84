// The archive of plans: its index, and the plans' bytes. algorithms/compile_plans.py describes it.
#pragma once

#include "runtime/base/status.h"

#include <cstdint>
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

/// Immutable; any thread.
class Archive {
public:
  /// InternalError if the bytes, which outlive it, are no archive, or a damaged one.
  static StatusOr<Archive> read(std::span<const uint8_t> bytes);

  /// Entries of a class, collective and number of ranks come smallest sizes first.
  const std::vector<Entry> &entries() const { return all; }

  /// The CBOR of the plan of an entry. InternalError if the archive is damaged there.
  StatusOr<std::string> planOf(const Entry &entry) const;

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
