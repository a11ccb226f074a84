// A map from ranges of chunks to what is known of them, cut where ranges begin and end.
#pragma once

#include "compiler/analysis/CutSet.h"

#include <cstdint>
#include <utility>
#include <vector>

namespace occl::analysis {

/// Each chunk, from 0 on, has a value of type T, at first the initial one. Neighbours that were
/// always accessed together share one. Memory for as many values as the last chunk that was named;
/// time for the pieces of a range, almost whatever their length.
template <typename T> class AccessMap {
public:
  explicit AccessMap(T initial = T()) : values(1, std::move(initial)) {
    cuts.grow(1);
    cuts.insert(0);
  }

  /// Calls fn(begin, end, T &) for each maximal piece of [begin, end) with a value of its own.
  template <typename Function> void forEach(int64_t begin, int64_t end, Function fn) {
    cutAt(begin);
    cutAt(end);
    while (begin < end) {
      auto next = static_cast<int64_t>(cuts.next(static_cast<uint64_t>(begin) + 1));
      fn(begin, next, values[begin]);
      begin = next;
    }
  }

  /// Replaces the values of [begin, end), which is not empty, by one.
  void assign(int64_t begin, int64_t end, T value) {
    cutAt(begin);
    cutAt(end);
    cuts.erase(static_cast<uint64_t>(begin) + 1, static_cast<uint64_t>(end));
    values[begin] = std::move(value);
  }

private:
  /// Makes a piece begin at `at`.
  void cutAt(int64_t at) {
    auto position = static_cast<uint64_t>(at);
    if (position >= values.size()) {
      values.resize(position + 1);
      cuts.grow(position + 1);
    }
    if (cuts.contains(position))
      return;
    values[position] = values[cuts.previous(position)];
    cuts.insert(position);
  }

  /// Of the pieces that begin at each chunk, meaningless elsewhere.
  std::vector<T> values;
  CutSet cuts;
};

} // namespace occl::analysis
