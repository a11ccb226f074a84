// A map from ranges of chunks to what is known of them, cut where ranges begin and end.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>

namespace occl::analysis {

/// Each chunk has a value of type T, at first a default one. Neighbours that were always accessed
/// together share one.
template <typename T> class AccessMap {
public:
  /// Calls fn(T &) for each maximal piece of [begin, end) with a value of its own. O(log n) and the
  /// pieces.
  template <typename Function> void forEach(int64_t begin, int64_t end, Function fn) {
    auto piece = cutAt(begin);
    cutAt(end);
    while (piece != pieces.end() && piece->first < end) {
      auto next = std::next(piece);
      fn(piece->first, next == pieces.end() ? end : next->first, piece->second);
      piece = next;
    }
  }

  /// Replaces the values of [begin, end) by one.
  void assign(int64_t begin, int64_t end, T value) {
    auto first = cutAt(begin);
    auto last = cutAt(end);
    first->second = std::move(value);
    pieces.erase(std::next(first), last);
  }

private:
  /// Makes a piece begin at `at` and returns it.
  typename std::map<int64_t, T>::iterator cutAt(int64_t at) {
    auto after = pieces.upper_bound(at);
    auto piece = std::prev(after);
    return piece->first == at ? piece : pieces.emplace_hint(after, at, piece->second);
  }

  /// From the first chunk of each piece; the last piece has no end.
  std::map<int64_t, T> pieces = {{INT64_MIN, T()}};
};

} // namespace occl::analysis
