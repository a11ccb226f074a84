// The words of arrival of a rank's receives. They are taken when a receive is matched, by a thread
// that must not call CUDA: so they are zero before. Offsets only: knows no memory.
#pragma once

#include "runtime/memory/arena.h"

#include <cstdint>
#include <optional>
#include <utility>
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
    const auto offset = zero.allocate(bytesOf(number));
    if (!offset)
      return std::nullopt;
    return Range{*offset, bytesOf(number)};
  }
  /// They are not used any more, and not zero.
  void giveBack(Range range) { used.push_back(range); }
  /// Those that were given back, which are the caller's to be cleared: nobody else gets them before
  /// each is told of by cleared(), or by giveBack() if it could not be.
  std::vector<Range> takeUsed() { return std::exchange(used, {}); }
  /// It is zero.
  void cleared(Range range) { zero.release(range.offset, range.bytes); }

private:
  static uint64_t bytesOf(uint64_t number) { return (number == 0 ? 1 : number) * sizeof(uint64_t); }

  transport::Arena zero;
  std::vector<Range> used;
};

} // namespace occl::cuda
