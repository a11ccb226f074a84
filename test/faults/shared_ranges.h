// Which memory of this process others map as well.
#pragma once

namespace occl::faults {

/// Not thread safe: the process runs one thread at a time.
struct SharedRanges {
  static bool contains(const void *address);
  /// After something was mapped or unmapped.
  static void forget();
};

} // namespace occl::faults
