// Random chunk programs: single copies and reductions, and the patterns that passes look for.
#pragma once

#include "test/random/reference.h"

#include <cstdint>
#include <functional>

namespace occl::random {

/// splitmix64: the same numbers on every machine.
class Random {
public:
  explicit Random(uint64_t seed) : state(seed) {}
  uint64_t next();
  /// In [0, bound); bound is at least 1.
  uint32_t below(uint32_t bound) { return static_cast<uint32_t>(next() % bound); }
  uint32_t between(uint32_t low, uint32_t high) { return low + below(high - low + 1); }
  bool chance(uint32_t percent) { return below(100) < percent; }
  template <typename T> T oneOf(std::initializer_list<T> values) {
    return values.begin()[below(static_cast<uint32_t>(values.size()))];
  }

private:
  uint64_t state;
};

/// 2 to 16 ranks.
Shape randomShape(Random &random);

/// Adds 15 to 60 statements to `program`, of 1 to 4 chunks each.
class Generator {
public:
  Generator(Reference &program, Random &random) : program(program), random(random) {}
  void run();

private:
  void copy();
  void reduce();
  void broadcast();
  void relay();
  void ring();
  void gather();

  using Shift = std::function<void(uint32_t offset, uint32_t count)>;
  void chunkwise(uint32_t count, const Shift &emit);
  uint32_t count() { return random.oneOf({1u, 1u, 2u, 3u, 4u}); }
  Place place(std::initializer_list<Buffer> buffers, uint32_t count);
  Place source(uint32_t count);
  Place target(uint32_t count);
  Place fit(Place place, Place source);
  std::vector<uint32_t> others(uint32_t rank);
  std::string randomHint();

  Reference &program;
  Random &random;
};

} // namespace occl::random
