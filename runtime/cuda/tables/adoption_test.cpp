// All interleavings of thread blocks that work, wait, leave, adopt and end, with the decisions of
// adoption.h: nothing is executed twice or forgotten, and the word is free at the end.
#include "runtime/cuda/tables/adoption.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <set>
#include <vector>

namespace occl::cuda {
namespace {

constexpr uint32_t kBlocks = 3;

enum class At : uint8_t {
  Works,  // executes its own steps
  Asks,   // has looked at the word, and is about to change it
  Leaves, // has changed the word; its context is not stored yet
  IsGone, // gone; what it left can be seen
  Adopts,
  Ending, // an adopter that has looked at the word, and is about to free it
  Ended,
};

struct Block {
  At at = At::Works;
  uint8_t asked = 0;     // how often it may still ask to leave
  uint8_t remaining = 1; // steps
  uint8_t finished = 0;  // of others, as adopter
  uint64_t seen = 0;
  auto operator<=>(const Block &) const = default;
};
struct State {
  std::array<Block, kBlocks> blocks;
  uint64_t word = kFreeWord;
  auto operator<=>(const State &) const = default;
};

/// What block b may do in `state`: the states after it.
class Moves {
public:
  Moves(const State &state, uint64_t number) : state(state), number(number) {}

  std::vector<State> all() {
    for (uint32_t b = 0; b < kBlocks; ++b)
      of(b);
    return std::move(found);
  }

private:
  template <class Change> void add(const Change &change) {
    State next = state;
    change(next);
    found.push_back(next);
  }
  /// The steps of b, by an executor: what was done twice would wrap around.
  static void step(State &next, uint32_t b) {
    ASSERT_GT(next.blocks[b].remaining, 0);
    --next.blocks[b].remaining;
  }

  void of(uint32_t b) {
    const Block &block = state.blocks[b];
    switch (block.at) {
    case At::Works:
      if (block.remaining != 0)
        add([&](State &next) { step(next, b); });
      else
        add([&](State &next) { next.blocks[b].at = At::Ended; });
      if (block.remaining != 0 && block.asked != 0)
        add([&](State &next) {
          next.blocks[b].at = At::Asks;
          next.blocks[b].seen = state.word;
          --next.blocks[b].asked;
        });
      return;
    case At::Asks:
      return add([&](State &next) { ask(next, b); });
    case At::Leaves:
      return add([&](State &next) { next.blocks[b].at = At::IsGone; });
    case At::Adopts:
      return adopt(b);
    case At::Ending:
      return add([&](State &next) {
        bool isFree = state.word == block.seen;
        next.word = isFree ? kFreeWord : state.word;
        next.blocks[b].at = isFree ? At::Ended : At::Adopts;
      });
    case At::IsGone:
    case At::Ended:
      return;
    }
  }

  void ask(State &next, uint32_t b) {
    const Block &block = state.blocks[b];
    PartingOffer offer = offerParting(block.seen, number);
    Block &after = next.blocks[b];
    if (state.word != block.seen) {
      after.seen = state.word; // asks again
    } else if (offer.parting == Parting::Stay) {
      after.at = At::Works;
    } else {
      next.word = offer.next;
      after.at = offer.parting == Parting::Adopt ? At::Adopts : At::Leaves;
      after.finished = 0;
    }
  }

  void adopt(uint32_t b) {
    const Block &block = state.blocks[b];
    if (block.remaining != 0)
      add([&](State &next) { step(next, b); });
    for (uint32_t other = 0; other < kBlocks; ++other)
      if (state.blocks[other].at == At::IsGone && state.blocks[other].remaining != 0)
        add([&](State &next) {
          step(next, other);
          ++next.blocks[b].finished;
        });
    if (block.remaining == 0 && state.word == adoptedWord(number, block.finished))
      add([&](State &next) {
        next.blocks[b].at = At::Ending;
        next.blocks[b].seen = state.word;
      });
  }

  const State &state;
  const uint64_t number;
  std::vector<State> found;
};

bool isOver(const State &state) {
  for (const Block &block : state.blocks)
    if (block.remaining != 0 || (block.at != At::Ended && block.at != At::IsGone))
      return false;
  return true;
}

TEST(AdoptionTest, EveryInterleavingEndsWithAllDoneAndTheWordFree) {
  constexpr uint64_t kNumber = 6;
  State first;
  for (Block &block : first.blocks)
    block.asked = 2;
  std::set<State> seen = {first};
  std::vector<State> open = {first};
  size_t numEnds = 0, numWithTwoAdopters = 0;
  while (!open.empty()) {
    State state = open.back();
    open.pop_back();
    uint32_t adopters = 0;
    for (const Block &block : state.blocks)
      adopters += block.at == At::Adopts || block.at == At::Ending;
    ASSERT_LE(adopters, 1u);
    std::vector<State> after = Moves(state, kNumber).all();
    if (after.empty()) {
      ++numEnds;
      ASSERT_TRUE(isOver(state)) << "somebody is stuck, or was forgotten";
      ASSERT_EQ(state.word, kFreeWord);
      uint32_t left = 0;
      for (const Block &block : state.blocks)
        left += block.at == At::IsGone;
      numWithTwoAdopters += left == kBlocks - 1;
    }
    for (const State &next : after)
      if (seen.insert(next).second)
        open.push_back(next);
  }
  EXPECT_GT(numEnds, 1u);
  EXPECT_GT(numWithTwoAdopters, 0u);
}

TEST(AdoptionTest, AnotherInvocationsWordIsLeftAlone) {
  uint64_t other = adoptedWord(6 + kAdoptions, 2);
  PartingOffer offer = offerParting(other, 6);
  EXPECT_EQ(offer.parting, Parting::Stay);
  EXPECT_EQ(offer.next, other);
  EXPECT_EQ(offerParting(adoptedWord(6, 2), 6).next, adoptedWord(6, 3));
}

TEST(AdoptionTest, WordsAndContextsLieApart) {
  std::vector<uint64_t> memory(Adoptions::bytesFor(5) / sizeof(uint64_t));
  Adoptions adoptions{reinterpret_cast<char *>(memory.data())};
  std::set<char *> begins;
  for (uint64_t number = 0; number < kAdoptions; ++number) {
    char *word = reinterpret_cast<char *>(adoptions.word(number, 5));
    char *end = reinterpret_cast<char *>(adoptions.left(number, 5) + 5);
    EXPECT_EQ(adoptions.word(number + kAdoptions, 5), adoptions.word(number, 5));
    EXPECT_LE(end, adoptions.memory + Adoptions::bytesFor(5));
    EXPECT_EQ(end - word, static_cast<ptrdiff_t>(Adoptions::strideFor(5)));
    EXPECT_TRUE(begins.insert(word).second);
  }
}

} // namespace
} // namespace occl::cuda
