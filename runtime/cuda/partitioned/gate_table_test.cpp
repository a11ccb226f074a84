// Gate tables against what the plan's instructions access, element by element.
#include "runtime/cuda/partitioned/gate_table.h"

#include "plan/testing/example_plans.h"
#include "runtime/exec/bind/bind.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace occl::cuda {
namespace {

using interpreter::Program;
using partitioned::CollectiveBuffers;

/// Elements of input and output that a thread block accesses.
struct Accessed {
  std::set<uint64_t> input, outputStored, outputRead;

  Accessed(const Program &program, uint32_t block) {
    const interpreter::BoundBlock &bound = program.blocks[block];
    for (uint32_t i = 0; i < bound.numInstructions; ++i) {
      const interpreter::BoundInstruction &now = program.instructions[bound.firstInstruction + i];
      for (uint32_t o = 0; o < now.numSources + now.numDestinations; ++o) {
        const interpreter::BoundOperand &operand = program.operands[now.firstOperand + o];
        const bool isStored = o >= now.numSources;
        for (uint64_t e = 0; e < now.elements; ++e) {
          const uint64_t at = operand.offset / program.elementBytes + e;
          if (operand.place == static_cast<interpreter::Place>(plan::OperandKind::Input))
            input.insert(at);
          else if (operand.place == static_cast<interpreter::Place>(plan::OperandKind::Output))
            (isStored ? outputStored : outputRead).insert(at);
        }
      }
    }
  }
};

std::set<uint64_t> partitionsIn(const GateTable &table, const std::vector<uint32_t> &first,
                                uint32_t block) {
  std::set<uint64_t> partitions;
  for (uint32_t r = first[block]; r < first[block + 1]; ++r)
    for (uint32_t p = table.ranges[r].begin; p < table.ranges[r].end; ++p)
      EXPECT_TRUE(partitions.insert(p).second) << "twice";
  return partitions;
}

void expectRight(const Program &program, const CollectiveBuffers &buffers) {
  const GateTable table(program, buffers);
  const auto perInput = buffers.input.cut().unit, perOutput = buffers.output.cut().unit;
  std::set<uint64_t> allRead;
  std::vector<uint64_t> makers(buffers.output.partitions);
  for (uint32_t b = 0; b < program.numBlocks; ++b) {
    const Accessed accessed(program, b);
    std::set<uint64_t> read, made;
    for (uint64_t e : accessed.input)
      read.insert(e / perInput);
    for (const auto *elements : {&accessed.outputStored, &accessed.outputRead})
      for (uint64_t e : *elements)
        if (buffers.inPlace && e >= static_cast<uint64_t>(*buffers.inPlace) &&
            e - static_cast<uint64_t>(*buffers.inPlace) < buffers.input.elements)
          read.insert((e - static_cast<uint64_t>(*buffers.inPlace)) / perInput);
    for (uint64_t e : accessed.outputStored)
      made.insert(e / perOutput);
    EXPECT_EQ(partitionsIn(table, table.firstRead, b), read) << "thread block " << b;
    EXPECT_EQ(partitionsIn(table, table.firstMade, b), made) << "thread block " << b;
    allRead.insert(read.begin(), read.end());
    for (uint64_t q : made)
      ++makers[q];
  }
  uint64_t atEnd = 0;
  for (uint32_t r = table.firstRead.back(); r < table.firstRead.back() + table.atEnd; ++r)
    for (uint32_t p = table.ranges[r].begin; p < table.ranges[r].end; ++p, ++atEnd)
      EXPECT_FALSE(allRead.contains(p));
  EXPECT_EQ(allRead.size() + atEnd, buffers.input.partitions);
  for (uint64_t q = 0; q < makers.size(); ++q) {
    EXPECT_EQ(table.outputs[q].makers, makers[q]);
    EXPECT_EQ(table.outputs[q].made, 0u);
  }
}

TEST(GateTable, SaysWhatInstructionsAccess) {
  constexpr uint64_t kCount = 101;
  for (const plan::Plan &plan :
       {plan::testing::ringAllReduce(3), plan::testing::oneShotAllReduce(4),
        plan::testing::twoShotAllReduce(2)})
    for (uint32_t rank = 0; rank < plan.numRanks; ++rank) {
      interpreter::BindRequest request;
      request.rank = rank;
      request.count = kCount;
      request.tiles = {64, 1};
      auto bound = interpreter::bind(plan, request);
      ASSERT_TRUE(bound.ok()) << bound.status().message();
      for (uint64_t inputs : {1, 3, 17, 101, 150})
        for (uint64_t outputs : {1, 4, 33, 200}) {
          CollectiveBuffers buffers{.input = {kCount, inputs}, .output = {kCount, outputs}};
          expectRight((*bound)->program(), buffers);
          buffers.inPlace = 0;
          expectRight((*bound)->program(), buffers);
        }
    }
}

/// A rank that only takes part waits for its marks all the same.
TEST(GateTable, WithoutThreadBlocks) {
  const GateTable table(Program{}, {.input = {10, 4}, .output = {10, 2}});
  EXPECT_EQ(table.numBlocks, 1u);
  EXPECT_EQ(table.firstRead, (std::vector<uint32_t>{0, 0}));
  ASSERT_EQ(table.atEnd, 1u);
  EXPECT_EQ(table.ranges[0].begin, 0u);
  EXPECT_EQ(table.ranges[0].end, 4u);
  EXPECT_EQ(table.outputs[1].makers, 0u);
}

TEST(GateTable, LayoutHasNoOverlap) {
  const GateTable table(Program{}, {.input = {10, 4}, .output = {10, 3}});
  const GateLayout layout(200, 4, table);
  const uint64_t places[] = {200,           layout.marked,    layout.outputs,   layout.gates,
                             layout.ranges, layout.firstRead, layout.firstMade, layout.bytes};
  const uint64_t sizes[] = {0,
                            4 * sizeof(uint64_t),
                            3 * sizeof(device::OutputPartition),
                            sizeof(PartGates),
                            sizeof(PartitionRange),
                            2 * sizeof(uint32_t),
                            2 * sizeof(uint32_t)};
  for (size_t i = 0; i + 1 < std::size(places); ++i)
    EXPECT_LE(places[i] + sizes[i], places[i + 1]) << i;
  for (size_t i = 1; i + 1 < std::size(places); ++i)
    EXPECT_EQ(places[i] % 128, 0u) << i;
}

} // namespace
} // namespace occl::cuda
