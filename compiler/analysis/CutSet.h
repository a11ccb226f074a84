// A set of positions with fast neighbours: where the pieces of an AccessMap begin.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace occl::analysis {

/// A bit for each position, and one for each 64 of them that says whether any is set, so that gaps
/// are skipped 4,096 positions at a time.
class CutSet {
public:
  /// Positions below `size` can be used from now on; those that are new are not in the set.
  void grow(uint64_t size) {
    words.resize(size / 64 + 1, 0);
    summary.resize(words.size() / 64 + 1, 0);
  }

  bool contains(uint64_t at) const { return words[at / 64] >> (at % 64) & 1; }

  void insert(uint64_t at) {
    words[at / 64] |= uint64_t{1} << (at % 64);
    summary[at / 4096] |= uint64_t{1} << (at / 64 % 64);
  }

  /// Removes the positions in [begin, end).
  void erase(uint64_t begin, uint64_t end) {
    for (uint64_t word = begin / 64; begin < end; begin = ++word * 64) {
      uint64_t mask = from(begin);
      if (end / 64 == word)
        mask &= below(end);
      words[word] &= ~mask;
      if (words[word] == 0)
        summary[word / 64] &= ~(uint64_t{1} << (word % 64));
    }
  }

  /// The greatest position up to `at`, which there must be.
  uint64_t previous(uint64_t at) const {
    uint64_t word = at / 64;
    if (uint64_t bits = words[word] & (below(at) | uint64_t{1} << (at % 64)))
      return word * 64 + top(bits);
    uint64_t group = word / 64;
    uint64_t bits = summary[group] & below(word);
    while (bits == 0)
      bits = summary[--group];
    word = group * 64 + top(bits);
    return word * 64 + top(words[word]);
  }

  /// The least position from `at` on, which there must be.
  uint64_t next(uint64_t at) const {
    uint64_t word = at / 64;
    if (uint64_t bits = words[word] & from(at))
      return word * 64 + std::countr_zero(bits);
    uint64_t group = word / 64;
    uint64_t bits = summary[group] & ~below(word) & ~(uint64_t{1} << (word % 64));
    while (bits == 0)
      bits = summary[++group];
    word = group * 64 + std::countr_zero(bits);
    return word * 64 + std::countr_zero(words[word]);
  }

private:
  /// Masks of the bits of a word that are below, or at and above, the one of `at`.
  static uint64_t below(uint64_t at) { return (uint64_t{1} << (at % 64)) - 1; }
  static uint64_t from(uint64_t at) { return ~below(at); }
  static uint64_t top(uint64_t bits) { return 63 - std::countl_zero(bits); }

  std::vector<uint64_t> words, summary;
};

} // namespace occl::analysis
