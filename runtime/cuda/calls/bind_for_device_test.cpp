// What a device gets is the same in whatever memory it is made.
#include "runtime/cuda/calls/bind_for_device.h"

#include "plan/testing/example_plans.h"
#include "runtime/cuda/tables/adoption.h"
#include "runtime/cuda/tables/block_image.h"
#include "runtime/exec/step/ready.h"
#include "runtime/exec/step/straight.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory_resource>
#include <string>
#include <vector>

namespace occl::cuda {
namespace {

using namespace interpreter;
using plan::Protocol;

constexpr uint64_t kMiB = 1 << 20;

/// Copies, as the bytes may lie anywhere.
template <class T> T readAt(const DeviceTables &tables, uint64_t offset) {
  T row;
  EXPECT_LE(offset + sizeof row, tables.bytes.size());
  std::memcpy(static_cast<void *>(&row), tables.bytes.data() + offset, sizeof row);
  return row;
}

template <class... Fields> void append(std::vector<uint64_t> &numbers, Fields... fields) {
  (numbers.push_back(static_cast<uint64_t>(fields)), ...);
}

/// Bytes between fields are nobody's, so that rows are compared field by field.
std::vector<uint64_t> straightNumbers(const DeviceTables &tables, uint32_t numBlocks) {
  const StraightImages &layout = tables.straight;
  std::vector<uint64_t> numbers = {layout.stride,   layout.piecesAt,    layout.operandsAt,
                                   layout.maxSteps, layout.maxOperands, layout.numThreads};
  for (uint32_t b = 0; b < numBlocks && layout.stride != 0; ++b) {
    const uint64_t image = tables.straightAt + uint64_t{b} * layout.stride;
    uint32_t pieces = 0;
    for (uint32_t s = 0; s < layout.maxSteps; ++s) {
      const auto step = readAt<StraightStep>(tables, image + s * sizeof(StraightStep));
      pieces += step.numPieces;
      append(numbers, step.firstPiece, step.numPieces, step.unitsEach, step.instruction,
             step.reciprocal, step.maxSources);
    }
    for (uint32_t p = 0; p < pieces; ++p) {
      const auto piece =
          readAt<StraightPiece>(tables, image + layout.piecesAt + p * sizeof(StraightPiece));
      append(numbers, piece.firstOperand, piece.numSources, piece.numDestinations, piece.units,
             piece.bytes, piece.divisor);
    }
    for (uint32_t o = 0; o < layout.maxOperands; ++o) {
      const auto operand =
          readAt<StraightOperand>(tables, image + layout.operandsAt + o * sizeof(StraightOperand));
      append(numbers, operand.offset, operand.place, operand.flag);
    }
  }
  return numbers;
}

std::vector<uint64_t> imageNumbers(const DeviceTables &tables, uint32_t numBlocks) {
  std::vector<uint64_t> numbers = {tables.imageStride};
  for (uint32_t b = 0; b < numBlocks && tables.imageStride != 0; ++b) {
    const uint64_t image = tables.imagesAt + b * tables.imageStride;
    const auto header = readAt<ImageHeader>(tables, image);
    append(numbers, header.bytes, header.isPerStep, header.isMeasured, header.ready.numInstructions,
           header.ready.numPieces, header.ready.numSources);
    const auto sources = image + reinterpret_cast<uintptr_t>(header.ready.sources);
    for (uint32_t s = 0; s < header.ready.numSources; ++s) {
      const auto source = readAt<ReadySource>(tables, sources + s * sizeof(ReadySource));
      append(numbers, source.offset, source.stride, source.value, source.limit, source.perTile,
             source.message, source.placeAndKind);
    }
  }
  return numbers;
}

void expectSame(const plan::Plan &plan, const DeviceBindRequest &request, size_t roomBytes) {
  const auto sizes = OrderedGeometry::forMemory(plan.numRanks, {256 * kMiB, 256 * kMiB}, true);
  const auto usual = bindForDevice(plan, sizes, request);
  ASSERT_TRUE(usual.ok()) << usual.status().message();
  // What was there before is nothing.
  std::vector<std::byte> room(roomBytes, std::byte{0xa5});
  std::pmr::monotonic_buffer_resource memory(room.data(), room.size());
  const auto made = bindForDevice(plan, sizes, request, &memory);
  ASSERT_TRUE(made.ok()) << made.status().message();
  const DeviceTables &tables = made->tables, &others = usual->tables;
  const uint32_t numBlocks = made->bound->program().numBlocks;
  EXPECT_EQ(made->isStraightAlone, usual->isStraightAlone);
  EXPECT_EQ(made->bound->inputBytes(), usual->bound->inputBytes());
  EXPECT_EQ(tables.bytes.size(), others.bytes.size());
  EXPECT_EQ(tables.imagesAt, others.imagesAt);
  EXPECT_EQ(tables.straightAt, others.straightAt);
  EXPECT_EQ(imageNumbers(tables, numBlocks), imageNumbers(others, numBlocks));
  EXPECT_EQ(straightNumbers(tables, numBlocks), straightNumbers(others, numBlocks));
  // Either kind of tables is there, and words of adoptions, which begin as zeroes.
  EXPECT_TRUE(tables.imageStride != 0 || made->isStraightAlone);
  EXPECT_EQ(tables.hasAdoptions, numBlocks > 1);
  EXPECT_GE(tables.imagesAt, tables.hasAdoptions ? Adoptions::bytesFor(numBlocks) : 0);
  const auto adoptions =
      static_cast<ptrdiff_t>(tables.hasAdoptions ? Adoptions::bytesFor(numBlocks) : 0);
  EXPECT_TRUE(std::all_of(tables.bytes.begin(), tables.bytes.begin() + adoptions,
                          [](char byte) { return byte == 0; }));
}

TEST(BindForDevice, MakesTheSameInAnyMemory) {
  for (uint32_t ranks : {2u, 3u})
    for (Protocol protocol : {Protocol::Simple, Protocol::LL, Protocol::LL128})
      for (Kernels kernels : {Kernels::InStream, Kernels::Resident})
        for (uint64_t count : {1u, 1000u, 20'003u})
          for (size_t roomBytes : {size_t{1}, size_t{3000}, size_t{1} << 20})
            for (plan::Plan plan :
                 {plan::testing::ringAllReduce(ranks), plan::testing::twoShotAllReduce(ranks)}) {
              SCOPED_TRACE(plan.name + ", " + std::to_string(ranks) + " ranks, protocol " +
                           std::to_string(static_cast<int>(protocol)) + ", " +
                           std::to_string(count) + " elements, room of " +
                           std::to_string(roomBytes));
              plan.protocol = protocol;
              expectSame(plan, {.rank = 1, .count = count, .kernels = kernels}, roomBytes);
            }
}

} // namespace
} // namespace occl::cuda
