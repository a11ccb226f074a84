// Marks and arrivals of a collective against what they say, element by element.
#include "runtime/partitioned/collective_parts.h"
#include "support/testing/seed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

namespace occl::partitioned {
namespace {

using interpreter::BoundBlock;
using interpreter::BoundInstruction;
using interpreter::BoundOperand;
using interpreter::Program;
using plan::OperandKind;
using plan::Range;

/// A program of one thread block that stores to ranges of an output of int32.
struct Stores {
  explicit Stores(std::vector<Range> stored) : ranges(std::move(stored)) {
    for (const Range &range : ranges) {
      BoundInstruction instruction;
      instruction.elements = range.length();
      instruction.firstOperand = static_cast<uint32_t>(operands.size());
      instruction.numSources = 1;
      instruction.numDestinations = 2;
      instructions.push_back(instruction);
      for (OperandKind kind : {OperandKind::Input, OperandKind::Scratch, OperandKind::Output}) {
        BoundOperand operand;
        operand.kind = kind;
        operand.place = static_cast<interpreter::Place>(kind);
        operand.offset = range.begin * 4;
        operands.push_back(operand);
      }
    }
    block.numInstructions = static_cast<uint32_t>(instructions.size());
    program.blocks = &block;
    program.numBlocks = 1;
    program.instructions = instructions.data();
    program.operands = operands.data();
    program.elementBytes = 4;
  }

  std::vector<Range> ranges;
  std::vector<BoundInstruction> instructions;
  std::vector<BoundOperand> operands;
  BoundBlock block;
  Program program;
};

/// [begin, end) of partition p by counting elements one after the other.
Range countedRange(uint64_t elements, uint64_t partitions, uint64_t p) {
  uint64_t each = 0;
  while (each * partitions < elements)
    ++each;
  return {std::min(elements, p * each), std::min(elements, (p + 1) * each)};
}

TEST(CollectiveSide, AllSmallOnes) {
  for (uint64_t elements = 0; elements <= 64; ++elements)
    for (uint64_t partitions = 1; partitions <= 64; ++partitions)
      for (uint64_t p = 0; p < partitions; ++p) {
        const Range range = Side{elements, partitions}.elementsOf(p);
        const Range counted = countedRange(elements, partitions, p);
        ASSERT_EQ(range.length(), counted.length()) << elements << " " << partitions << " " << p;
        ASSERT_TRUE(range.isEmpty() || range == counted);
      }
}

/// Stores of random ranges, which may be stored to several times or never, in random pieces and
/// order: a partition has arrived with the last store to any of its elements, and not before.
void expectArrivals(uint64_t elements, uint64_t partitions, std::mt19937_64 &random) {
  std::vector<Range> ranges;
  for (uint64_t i = 0; i < random() % 8; ++i) {
    const uint64_t a = random() % (elements + 1), b = random() % (elements + 1);
    ranges.push_back({std::min(a, b), std::max(a, b)});
  }
  const Stores stores(ranges);
  Doorbell bell;
  CollectiveParts parts({.input = {1, 1}, .output = {elements, partitions}}, stores.program, bell);
  for (uint64_t epoch = 1; epoch <= 3; ++epoch) {
    parts.begin(epoch);
    std::vector<int> left(elements);
    std::vector<Range> pieces;
    for (const Range &range : ranges)
      for (uint64_t at = range.begin; at < range.end;) {
        const uint64_t end = std::min(range.end, at + 1 + random() % 7);
        pieces.push_back({at, end});
        for (; at < end; ++at)
          ++left[at];
      }
    std::ranges::shuffle(pieces, random);
    for (size_t i = 0; i <= pieces.size(); ++i) {
      for (uint64_t q = 0; q < partitions; ++q) {
        const Range mine = countedRange(elements, partitions, q);
        const bool isComplete = std::all_of(left.begin() + static_cast<int64_t>(mine.begin),
                                            left.begin() + static_cast<int64_t>(mine.end),
                                            [](int stores) { return stores == 0; });
        ASSERT_EQ(parts.hasArrived(q, epoch), isComplete)
            << elements << " elements in " << partitions << ", partition " << q << ", epoch "
            << epoch;
      }
      if (i == pieces.size())
        break;
      parts.stored(pieces[i]);
      for (uint64_t at = pieces[i].begin; at < pieces[i].end; ++at)
        --left[at];
    }
  }
}

TEST(CollectiveParts, ArriveWithTheirLastStore) {
  std::mt19937_64 random(printedSeed());
  for (uint64_t elements : {1, 2, 5, 16, 33, 60})
    for (uint64_t partitions = 1; partitions <= 64; partitions += 1 + partitions / 9)
      expectArrivals(elements, partitions, random);
}

/// What a step may access of the input, and in place of the output, wherever the two lie.
TEST(CollectiveParts, AreOpenOnceAllThatOverlapAreMarked) {
  std::mt19937_64 random(printedSeed());
  const Stores none({});
  for (int round = 0; round < 200; ++round) {
    const uint64_t elements = random() % 50 + 1, partitions = random() % 60 + 1;
    const auto shift = static_cast<int64_t>(random() % 41) - 20;
    const uint64_t outputElements = elements + 25;
    Doorbell bell;
    CollectiveBuffers buffers;
    buffers.input = {elements, partitions};
    buffers.output = {outputElements, 3};
    if (round % 3 != 0)
      buffers.inPlace = shift;
    CollectiveParts parts(buffers, none.program, bell);
    parts.begin(1);
    std::vector<bool> isMarked(elements);
    std::vector<uint64_t> order(partitions);
    std::iota(order.begin(), order.end(), 0);
    std::ranges::shuffle(order, random);
    for (uint64_t p : order) {
      ASSERT_FALSE(parts.areAllMarked(1));
      ASSERT_TRUE(parts.mark(p, 1));
      ASSERT_FALSE(parts.mark(p, 1));
      parts.count(1);
      const Range mine = countedRange(elements, partitions, p);
      std::fill(isMarked.begin() + static_cast<int64_t>(mine.begin),
                isMarked.begin() + static_cast<int64_t>(mine.end), true);
      const auto isOpen = [&](int64_t begin, int64_t end) {
        for (int64_t at = begin; at < end; ++at)
          if (at >= 0 && at < static_cast<int64_t>(elements) && !isMarked[static_cast<size_t>(at)])
            return false;
        return true;
      };
      for (int look = 0; look < 20; ++look) {
        const uint64_t begin = random() % elements, end = begin + random() % (elements - begin) + 1;
        ASSERT_EQ(!parts.missing(OperandKind::Input, {begin, end}),
                  isOpen(static_cast<int64_t>(begin), static_cast<int64_t>(end)));
        const uint64_t from = random() % outputElements,
                       to = from + random() % (outputElements - from) + 1;
        const bool mayStore = !parts.missing(OperandKind::Output, {from, to});
        ASSERT_EQ(mayStore, !buffers.inPlace || isOpen(static_cast<int64_t>(from) - shift,
                                                       static_cast<int64_t>(to) - shift))
            << shift << " " << from << " " << to;
      }
    }
    EXPECT_TRUE(parts.areAllMarked(1));
    EXPECT_EQ(parts.firstUnmarked(1), partitions);
  }
}

/// Nothing is stored to the own part of an all-gather in place: it is there once it is marked.
TEST(CollectiveParts, InPlaceWhatNoStepStoresArrivesWithItsMark) {
  const Stores stores({{0, 4}, {8, 12}});
  Doorbell bell;
  CollectiveParts parts({.input = {4, 2}, .output = {12, 6}, .inPlace = 4}, stores.program, bell);
  for (uint64_t epoch = 1; epoch <= 2; ++epoch) {
    parts.begin(epoch);
    parts.stored({0, 4});
    EXPECT_TRUE(parts.hasArrived(0, epoch));
    EXPECT_FALSE(parts.hasArrived(2, epoch));
    EXPECT_TRUE(parts.mark(0, epoch));
    EXPECT_TRUE(parts.hasArrived(2, epoch));
    EXPECT_FALSE(parts.hasArrived(3, epoch));
    EXPECT_TRUE(parts.mark(1, epoch));
    EXPECT_TRUE(parts.hasArrived(3, epoch));
    EXPECT_FALSE(parts.hasArrived(5, epoch));
    parts.stored({8, 12});
    EXPECT_TRUE(parts.hasArrived(5, epoch));
  }
}

/// It neither takes a later mark back nor counts.
TEST(CollectiveParts, AMarkThatComesAnEpochLate) {
  const Stores none({});
  Doorbell bell;
  CollectiveParts parts({.input = {2, 2}}, none.program, bell);
  parts.begin(1);
  EXPECT_TRUE(parts.mark(0, 1) && parts.mark(1, 1));
  EXPECT_FALSE(parts.areAllMarked(1)) << "who has made them may still be at it";
  parts.count(2);
  EXPECT_TRUE(parts.areAllMarked(1));
  parts.begin(2);
  EXPECT_TRUE(parts.mark(0, 2));
  parts.count(1);
  EXPECT_FALSE(parts.mark(0, 1));
  EXPECT_TRUE(parts.isMarked(0, 2));
  EXPECT_FALSE(parts.areAllMarked(2));
  EXPECT_EQ(*parts.missing(OperandKind::Input, {0, 2}), 1u);
  EXPECT_TRUE(parts.mark(1, 2));
  parts.count(1);
  EXPECT_TRUE(parts.areAllMarked(2));
}

/// Several executors need the same partitions of a copy: each is made once, when it is marked, and
/// whoever may access it finds it made.
TEST(CollectiveParts, CopiesAreMadeOnce) {
  constexpr uint64_t kElements = 1000, kPartitions = 7;
  std::vector<int32_t> input(kElements), copy(kElements);
  const Stores none({});
  Doorbell bell;
  CollectiveBuffers buffers;
  buffers.input = {kElements, kPartitions};
  buffers.type = DataType::Int32;
  buffers.data = reinterpret_cast<const char *>(input.data());
  CollectiveParts parts(buffers, none.program, bell);
  const int32_t factor = 3;
  for (uint64_t epoch = 1; epoch <= 50; ++epoch) {
    parts.begin(epoch);
    std::ranges::fill(copy, -1);
    parts.readCopy(reinterpret_cast<char *>(copy.data()), {&factor, 1});
    std::atomic<bool> isWrong{false};
    const auto execute = [&] {
      for (uint64_t at = 0; at < kElements;) {
        const uint64_t end = std::min(kElements, at + 37);
        if (parts.missing(OperandKind::Input, {at, end})) {
          std::this_thread::yield();
          continue;
        }
        for (; at < end; ++at)
          if (copy[at] != static_cast<int32_t>(3 * (at + epoch)))
            isWrong = true;
      }
    };
    std::thread first(execute), second(execute);
    for (uint64_t p = 0; p < kPartitions; ++p) {
      const Range mine = countedRange(kElements, kPartitions, p);
      for (uint64_t at = mine.begin; at < mine.end; ++at)
        input[at] = static_cast<int32_t>(at + epoch);
      parts.mark(p, epoch);
    }
    first.join();
    second.join();
    ASSERT_FALSE(isWrong);
  }
}

TEST(CollectiveParts, MarkedByThreads) {
  const Stores none({});
  Doorbell bell;
  CollectiveParts parts({.input = {64, 64}}, none.program, bell);
  for (uint64_t epoch = 1; epoch <= 100; ++epoch) {
    parts.begin(epoch);
    std::atomic<uint64_t> marked{0};
    std::vector<std::thread> threads;
    for (uint64_t t = 0; t < 3; ++t) // each partition by two of them
      threads.emplace_back([&, t] {
        uint64_t made = 0;
        for (uint64_t p = 0; p < 64; ++p)
          if (p % 3 != t)
            made += parts.mark(p, epoch) ? 1 : 0;
        parts.count(made);
        marked += made;
      });
    for (std::thread &thread : threads)
      thread.join();
    ASSERT_EQ(marked, 64u);
    ASSERT_TRUE(parts.areAllMarked(epoch));
  }
}

} // namespace
} // namespace occl::partitioned
