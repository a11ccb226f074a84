// The words of arrival of a rank's receives. They are taken when a receive is matched, by a thread
// that must not call CUDA: so they are zero before. Offsets only: knows no memory.
#pragma once

#include "runtime/memory/arena.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace occl::cuda {

/// Thread safety: none.
class ArrivalWords {
public:
  /// In bytes.
  struct Range {
    uint64_t offset, bytes;
  };

  /// Of memory of so many bytes, which is zero.
  explicit ArrivalWords(uint64_t bytes) : zero(bytes) {}

  bool canEverFit(uint64_t number) const { return zero.canEverFit(bytesOf(number)); }
  /// Nothing if there are not so many that are zero now.
  std::optional<Range> take(uint64_t number) {
    if (roomForUsed() <= numTaken)
      used.reserve(2 * (used.size() + numTaken + 1));
    const auto offset = zero.allocate(bytesOf(number));
    if (!offset)
      return std::nullopt;
    ++numTaken;
    return Range{*offset, bytesOf(number)};
  }
  /// They are not used any more, and not zero. Needs no memory.
  void giveBack(Range range) {
    --numTaken;
    used.push_back(range);
  }
  /// One of those that were given back, if there is one: the caller's, to be cleared. Nobody else
  /// gets it before that is told by cleared(), or by giveBack() if it could not be.
  std::optional<Range> takeUsed() {
    if (used.empty())
      return std::nullopt;
    const Range range = used.back();
    used.pop_back();
    ++numTaken;
    return range;
  }
  /// It is zero. Needs no memory.
  void cleared(Range range) {
    --numTaken;
    zero.release(range.offset, range.bytes);
  }
  /// So many can be given back without memory.
  uint64_t roomForUsed() const { return used.capacity() - used.size(); }

private:
  static uint64_t bytesOf(uint64_t number) { return (number == 0 ? 1 : number) * sizeof(uint64_t); }

  transport::Arena zero;
  std::vector<Range> used; // with room for all that are taken
  uint64_t numTaken = 0;
};

} // namespace occl::cuda
