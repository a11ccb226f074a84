// Which two buffers a call may have.
#include "plan/model/aliasing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace occl::plan {
namespace {

struct Shape {
  uint32_t part, inputs, outputs;
  int32_t offset; // whole parts
};

Plan planOf(const Shape &shape, bool outOfPlace, bool inPlace) {
  Plan plan;
  plan.numRanks = 1;
  plan.partChunks = shape.part;
  plan.outOfPlace = outOfPlace;
  plan.inPlace = inPlace;
  plan.requirements.emplace_back(); // the grain is an element
  plan.ranks = {
      {.inputChunks = shape.inputs, .outputChunks = shape.outputs, .inPlaceOffset = shape.offset}};
  return plan;
}

/// The bytes of both buffers in a memory, one number for each byte of each chunk: what the rule is
/// about, without any comparison of addresses.
struct Layout {
  Layout(const Plan &plan, uint64_t count, uint64_t elementBytes)
      : chunking(chunkingBytes(plan, count, elementBytes)) {}

  static std::vector<uint64_t> chunkingBytes(const Plan &plan, uint64_t count, uint64_t bytes) {
    std::vector<uint64_t> begins;
    uint32_t most = std::max(plan.ranks[0].inputChunks, plan.ranks[0].outputChunks);
    for (uint32_t chunk = 0; chunk <= most; ++chunk)
      begins.push_back(
          (chunk / plan.partChunks * count + count * (chunk % plan.partChunks) / plan.partChunks) *
          bytes);
    return begins;
  }
  std::vector<uint64_t> chunking;
};

/// "apart", "in place" (each input chunk that exists in the output lies there, and nothing else is
/// shared) or "mixed", for an input that begins `distance` bytes behind the output.
std::string relation(const Plan &plan, const Layout &layout, int64_t distance) {
  const RankPlan &rank = plan.ranks[0];
  bool shares = false, isAsSaid = true;
  for (uint32_t i = 0; i < rank.inputChunks; ++i)
    for (uint64_t byte = layout.chunking[i]; byte < layout.chunking[i + 1]; ++byte) {
      int64_t at = static_cast<int64_t>(byte) + distance;
      for (uint32_t o = 0; o < rank.outputChunks; ++o)
        if (at >= static_cast<int64_t>(layout.chunking[o]) &&
            at < static_cast<int64_t>(layout.chunking[o + 1])) {
          shares = true;
          isAsSaid &= int64_t{i} + rank.inPlaceOffset == o;
        }
    }
  for (uint32_t i = 0; i < rank.inputChunks && shares && isAsSaid; ++i) {
    int64_t o = int64_t{i} + rank.inPlaceOffset;
    if (o >= 0 && o < rank.outputChunks && layout.chunking[i] != layout.chunking[i + 1])
      isAsSaid = static_cast<int64_t>(layout.chunking[i]) + distance ==
                 static_cast<int64_t>(layout.chunking[static_cast<size_t>(o)]);
  }
  return !shares ? "apart" : isAsSaid ? "in place" : "mixed";
}

TEST(Aliasing, AcceptsWhatSharesNothingAndWhatSharesAsTheCollectiveSays) {
  constexpr uint64_t kElement = 4;
  std::vector<char> memory(4096);
  char *output = memory.data() + 2048;
  for (const Shape &shape :
       {Shape{1, 1, 1, 0}, Shape{1, 1, 1, 1}, Shape{1, 1, 1, -1}, Shape{2, 2, 6, 2},
        Shape{2, 2, 6, 6}, Shape{2, 6, 2, -4}, Shape{2, 6, 2, -6}, Shape{3, 6, 6, 3},
        Shape{1, 0, 2, 0}, Shape{1, 2, 0, 0}})
    for (uint64_t count : {0, 1, 2, 5})
      for (int modes = 1; modes < 4; ++modes) {
        Plan plan = planOf(shape, modes & 1, modes & 2);
        Aliasing aliasing(plan, 0, count, kElement);
        Layout layout(plan, count, kElement);
        const uint64_t inPlaceShares = [&] {
          for (int64_t d = -400; d <= 400; ++d)
            if (relation(plan, layout, d) == "in place")
              return 1;
          return 0;
        }();
        for (int64_t distance = -400; distance <= 400; ++distance) {
          std::string how = relation(plan, layout, distance);
          bool expected = how == "apart" ? plan.outOfPlace || !inPlaceShares : how == "in place";
          ASSERT_EQ(aliasing.accepts(output + distance, output), expected)
              << how << ", distance " << distance << ", count " << count << ", part " << shape.part
              << ", " << shape.inputs << " and " << shape.outputs << " chunks, offset "
              << shape.offset << ", modes " << modes;
          ASSERT_EQ(aliasing.isInPlace(output + distance, output), how == "in place");
          ASSERT_EQ(aliasing.needsCopy(output + distance, output),
                    how == "in place" && !plan.inPlace);
          ASSERT_EQ(aliasing.complaint(output + distance, output).empty(), expected);
        }
      }
}

TEST(Aliasing, SaysWhatIsWrong) {
  char memory[64];
  Aliasing outOfPlace(planOf({1, 1, 1, 0}, true, false), 0, 4, 4);
  EXPECT_EQ(outOfPlace.complaint(memory, memory), "");
  EXPECT_EQ(outOfPlace.complaint(memory + 4, memory),
            "the buffers overlap, but not as in place demands (send buffer = receive buffer)");
  EXPECT_EQ(outOfPlace.complaint(nullptr, memory),
            "the send buffer is NULL and must have 16 bytes");
  EXPECT_EQ(outOfPlace.complaint(memory, nullptr),
            "the receive buffer is NULL and must have 16 bytes");
  Aliasing inPlace(planOf({1, 1, 2, 1}, false, true), 0, 4, 4);
  EXPECT_EQ(inPlace.complaint(memory, memory),
            "the buffers overlap, but not as in place demands (send buffer = receive buffer + 16 "
            "bytes)");
  EXPECT_EQ(inPlace.complaint(memory + 32, memory),
            "its plan is valid in place only (send buffer = receive buffer + 16 bytes)");
  Aliasing behind(planOf({1, 1, 1, 1}, true, false), 0, 4, 4);
  EXPECT_EQ(behind.complaint(memory, memory),
            "the buffers overlap; in this collective those of this rank never do");
  Aliasing empty(planOf({1, 0, 1, 0}, true, true), 0, 4, 4);
  EXPECT_EQ(empty.complaint(nullptr, memory), "");
}

} // namespace
} // namespace occl::plan
