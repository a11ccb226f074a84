#include "test/random/generator.h"

#include <algorithm>

namespace occl::random {

uint64_t Random::next() {
  uint64_t z = state += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

Shape randomShape(Random &random) {
  Shape shape;
  shape.ranks = random.oneOf({2u, 2u, 3u, 3u, 4u, 4u, 5u, 6u, 8u, 16u});
  uint32_t chunks = random.oneOf({2u, 4u, 5u, 8u});
  shape.partChunks = random.oneOf({1u, chunks});
  uint32_t modes = random.below(4);
  shape.outOfPlace = modes != 2;
  shape.inPlace = modes >= 2;
  shape.offset = shape.inPlace ? random.oneOf({0u, 0u, shape.partChunks}) : 0;
  shape.sizes[0] = chunks;
  shape.sizes[1] = chunks + shape.offset;
  shape.sizes[2] = random.oneOf({1u, 3u, chunks});
  shape.keepsExtents = random.chance(50);
  return shape;
}

void Generator::run() {
  constexpr void (Generator::*kPatterns[])() = {
      &Generator::copy,      &Generator::copy,  &Generator::reduce, &Generator::reduce,
      &Generator::broadcast, &Generator::relay, &Generator::ring,   &Generator::gather};
  uint32_t wanted = random.between(15, 60);
  for (int tries = 0; tries < 200 && program.numStatements() < wanted; ++tries) {
    std::string hint = randomHint();
    if (!hint.empty())
      program.begin(hint);
    (this->*kPatterns[random.below(std::size(kPatterns))])();
    if (!hint.empty())
      program.end();
  }
}

/// A block around some statements, mostly none. No hint may change what a program computes.
std::string Generator::randomHint() {
  switch (random.below(12)) {
  case 0:
    return "channel(" + std::to_string(random.below(3)) + ")";
  case 1:
    return "parallelize(" + std::to_string(random.between(1, 4)) + ")";
  case 2:
    return "aggregate";
  default:
    return "";
  }
}

Place Generator::place(std::initializer_list<Buffer> buffers, uint32_t count) {
  Buffer buffer = random.oneOf(buffers);
  uint32_t size = program.shape().sizes[static_cast<int>(buffer)];
  return {buffer, random.below(program.shape().ranks),
          random.below(size >= count ? size - count + 1 : 1)};
}

/// Prefers what was computed to what was there from the beginning.
Place Generator::source(uint32_t count) {
  using enum Buffer;
  for (int tries = 0; tries < 20; ++tries) {
    Place candidate = place({Input, Output, Scratch, Scratch}, count);
    if (program.isReadable(candidate, count))
      return candidate;
  }
  return place({Input}, count);
}

Place Generator::target(uint32_t count) {
  using enum Buffer;
  return place({Output, Output, Scratch, Scratch, Scratch, Input}, count);
}

/// The place, moved to where chunks have the size of the source's, if sizes must be kept.
Place Generator::fit(Place place, Place source) {
  if (!program.shape().keepsExtents || place.buffer == Buffer::Scratch ||
      !program.isReadable(source, 1))
    return place;
  return {place.buffer, place.rank, program.at(source)->extent};
}

/// An operation on a range, or the same in steps of one chunk, which aggregation would join.
void Generator::chunkwise(uint32_t count, const Shift &emit) {
  if (count == 1 || random.chance(50))
    return emit(0, count);
  for (uint32_t i = 0; i < count; ++i)
    emit(i, 1);
}

void Generator::copy() {
  uint32_t chunks = count();
  Place from = source(chunks), to = fit(target(chunks), from);
  chunkwise(chunks, [&](uint32_t i, uint32_t n) { program.copy(from.at(i), to.at(i), n); });
}

void Generator::reduce() {
  uint32_t chunks = count();
  std::vector<Place> from(random.oneOf({2u, 2u, 3u, 4u}));
  for (Place &place : from)
    place = source(chunks);
  Place to = fit(target(chunks), from[0]);
  chunkwise(chunks, [&](uint32_t i, uint32_t n) {
    std::vector<Place> shifted = from;
    for (Place &place : shifted)
      place = place.at(i);
    program.reduce(shifted, to.at(i), n);
  });
}

std::vector<uint32_t> Generator::others(uint32_t rank) {
  std::vector<uint32_t> ranks;
  for (uint32_t r = 0; r < program.shape().ranks; ++r)
    if (r != rank)
      ranks.push_back(r);
  for (size_t i = ranks.size(); i > 1; --i)
    std::swap(ranks[i - 1], ranks[random.below(static_cast<uint32_t>(i))]);
  return ranks;
}

/// One value to several ranks, for multicast.
void Generator::broadcast() {
  uint32_t chunks = count();
  Place from = source(chunks), to = fit(target(chunks), from);
  for (uint32_t rank : others(from.rank)) {
    to.rank = rank;
    chunkwise(chunks, [&](uint32_t i, uint32_t n) { program.copy(from.at(i), to.at(i), n); });
  }
}

/// From rank to rank, through scratch or output, for fusion.
void Generator::relay() {
  uint32_t chunks = count();
  Place from = source(chunks), usual = fit(target(chunks), from);
  std::vector<uint32_t> way = others(from.rank);
  if (random.chance(50))
    way.push_back(from.rank);
  for (uint32_t rank : way) {
    Place to = random.chance(50) ? usual : fit(target(chunks), from);
    to.rank = rank;
    chunkwise(chunks, [&](uint32_t i, uint32_t n) { program.copy(from.at(i), to.at(i), n); });
    from = to;
  }
}

/// A sum that grows from rank to rank.
void Generator::ring() {
  using enum Buffer;
  uint32_t chunks = count();
  Place from = source(chunks), own = fit(place({Input}, chunks), from);
  Place to = fit(target(chunks), from);
  for (uint32_t rank : others(from.rank)) {
    own.rank = to.rank = rank;
    std::vector<Place> operands = {from, own};
    if (random.chance(30)) {
      Place staged = place({Scratch}, chunks);
      staged.rank = rank;
      if (program.copy(from, staged, chunks))
        operands[0] = staged;
    }
    if (random.chance(50))
      std::swap(operands[0], operands[1]);
    chunkwise(chunks, [&](uint32_t i, uint32_t n) {
      program.reduce(std::vector{operands[0].at(i), operands[1].at(i)}, to.at(i), n);
    });
    from = to;
  }
}

/// The inputs of all ranks, staged in the scratch of one or received by the reduction.
void Generator::gather() {
  using enum Buffer;
  uint32_t chunks = std::min(count(), program.shape().sizes[0]);
  Place to = target(1), own = fit(place({Input}, chunks), to);
  to = fit(to, own);
  std::vector<Place> from = {own};
  from[0].rank = to.rank;
  for (uint32_t rank : others(to.rank))
    from.push_back({own.buffer, rank, own.index});
  if (random.chance(50))
    for (uint32_t i = 0; i < from.size(); ++i) {
      Place staged = {Scratch, to.rank, i * chunks};
      if (program.copy(from[i], staged, chunks))
        from[i] = staged;
    }
  for (size_t i = from.size(); i > 1; --i)
    std::swap(from[i - 1], from[random.below(static_cast<uint32_t>(i))]);
  program.reduce(from, to, chunks);
}

} // namespace occl::random
