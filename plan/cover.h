// Which units of one cut of a buffer overlap a range of another. For two cuts whose numbers of
// units do not divide each other (33 and 17) no ratio of the numbers tells; begins and ends do.
#pragma once

#include <cstdint>

namespace occl::plan {

/// [begin, end) of elements, or of units.
struct Range {
  uint64_t begin = 0, end = 0;

  constexpr uint64_t length() const { return end - begin; }
  constexpr bool isEmpty() const { return begin == end; }
  constexpr bool overlaps(const Range &other) const {
    return begin < other.end && other.begin < end && !isEmpty() && !other.isEmpty();
  }
  bool operator==(const Range &) const = default;
};

/// `total` elements cut into units of `unit` elements, of which the last may have fewer. Without
/// elements, or where a unit has none, there are no units. No product of its functions exceeds
/// `total`, so all is exact in 64 bits.
struct UniformCut {
  uint64_t total = 0, unit = 0;

  constexpr uint64_t numUnits() const { return unit == 0 ? 0 : ceilDivided(total); }
  /// Of unit i, which is less than numUnits().
  constexpr Range elementsOf(uint64_t i) const {
    const uint64_t begin = i * unit;
    return {begin, total - begin < unit ? total : begin + unit};
  }
  /// The units that overlap these elements, which end within `total`; none of no elements.
  constexpr Range covering(Range elements) const {
    if (elements.isEmpty() || unit == 0)
      return {};
    return {elements.begin / unit, ceilDivided(elements.end)};
  }

private:
  constexpr uint64_t ceilDivided(uint64_t elements) const {
    return elements / unit + (elements % unit != 0 ? 1 : 0);
  }
};

} // namespace occl::plan
