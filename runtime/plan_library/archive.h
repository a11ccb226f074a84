// The archive of plans that the library comes with: an index, and each plan as columns of numbers
// (columns.h), packed by itself. pack_plans.cpp, which has verified them, makes it.
//
// A line "OCCL plans 5 <packed bytes of the index> <its bytes>", the index, the plans; index and
// plans are frames of zstd with a checksum. The index, as text:
//   for <class> <collective> <ranks> <islands>
//   flat <up to how many bytes>
//   plan <up to how many bytes, or -> <algorithm> <thread blocks> <hash> <first byte> <packed
//   bytes>
//     <bytes>
// Plans are for the group that was named last, the smallest sizes first; of several islands first
// may come up to which size those for one island serve. The first byte of a frame counts from the
// first plan's on.
#pragma once

#include "plan/model/plan.h"
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
  uint64_t maxBytes = 0;      // of one part that it is chosen for; ~0: any
  uint32_t numIslands = 1;    // as its group has
  std::string_view algorithm; // with its parameters, as in the tables
  uint64_t numBlocks = 0;     // thread blocks, of the rank that has the most
  uint64_t hash = 0;          // plan::hashPlan
  uint64_t firstByte = 0, packedBytes = 0, numBytes = 0;
};

/// Entries of a class, collective, number of ranks and of islands, smallest sizes first.
struct Group {
  std::string_view planClass; // "host-registered", "host-ordinary", "device-..."
  std::string_view collective;
  uint32_t numRanks = 0;
  /// On which the ranks lie, as many on each, and numbered island by island.
  uint32_t numIslands = 1;
  uint64_t flatBytes = 0; // for parts of so many bytes the entries for one island come before
  std::vector<Entry> entries;
};

/// Immutable; any thread.
class Archive {
public:
  /// InternalError if the bytes, which outlive it, are no archive, or a damaged one.
  static StatusOr<Archive> read(std::span<const uint8_t> bytes);

  const std::vector<Group> &groups() const { return all; }
  /// InternalError if the archive is damaged there.
  StatusOr<plan::Plan> planOf(const Entry &entry) const;

private:
  Status readIndex();

  std::unique_ptr<const std::string> index; // what entries and groups name is in it
  std::span<const uint8_t> packed;
  std::vector<Group> all;
};

} // namespace occl::plan_library
