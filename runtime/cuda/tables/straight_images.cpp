// The tables of straight thread blocks, in one layout that has room for the largest of each kind.
#include "runtime/cuda/tables/straight_images.h"

#include "runtime/base/cache_line.h"

#include <algorithm>
#include <cstring>

namespace occl::cuda {

using namespace interpreter;

namespace {

constexpr uint64_t kAlignment = 128, kWarp = 32;

/// And rows of nothing behind it, up to so many. The image lies anywhere.
template <class T>
void copyTo(char *image, uint64_t offset, const std::pmr::vector<T> &table, size_t rows = 0,
            const T &nothing = {}) {
  if (!table.empty())
    std::memcpy(image + offset, table.data(), table.size() * sizeof(T));
  for (size_t row = table.size(); row < rows; ++row)
    std::memcpy(image + offset + row * sizeof(T), &nothing, sizeof(T));
}

/// Room for the largest of each table, and a step without pieces.
StraightImages layOut(const std::pmr::vector<StraightTables> &blocks) {
  size_t steps = 0, pieces = 0, operands = 0;
  uint32_t threads = 0;
  for (const StraightTables &tables : blocks) {
    steps = std::max(steps, tables.steps.size());
    pieces = std::max(pieces, tables.pieces.size());
    operands = std::max(operands, tables.operands.size());
    threads = std::max(threads, tables.numThreads);
  }
  StraightImages layout;
  layout.maxSteps = static_cast<uint16_t>(steps);
  layout.maxOperands = static_cast<uint16_t>(operands);
  // A lane for each operand makes its address, one for each unit of a step takes it through.
  layout.numThreads = static_cast<uint16_t>(
      std::max(alignUp(threads, kWarp), alignUp(std::max<uint64_t>(operands, 1), kWarp)));
  layout.piecesAt = static_cast<uint16_t>(steps * sizeof(StraightStep));
  layout.operandsAt = static_cast<uint16_t>(layout.piecesAt + pieces * sizeof(StraightPiece));
  layout.obstaclesAt =
      static_cast<uint16_t>(layout.operandsAt + operands * sizeof(StraightOperand));
  layout.stride =
      static_cast<uint32_t>(alignUp(layout.obstaclesAt + operands * sizeof(Obstacle), kAlignment));
  return layout;
}

} // namespace

StraightTablesOnDevice makeStraightImages(const Program &program,
                                          std::pmr::memory_resource *memory) {
  StraightTablesOnDevice made{std::pmr::vector<StraightTables>(memory), {}};
  made.blocks.reserve(program.numBlocks);
  // All thread blocks of the rank are straight, or none counts as straight: a call has one kernel.
  for (uint32_t b = 0; b < program.numBlocks; ++b) {
    auto tables = makeStraightTables(program, b, memory);
    if (!tables) {
      made.blocks.clear();
      return made;
    }
    made.blocks.push_back(std::move(*tables));
  }
  if (made.blocks.empty())
    return made;
  // One layout for all, so that kernels find each table at the same offset.
  made.layout = layOut(made.blocks);
  made.layout.isWide = program.line.bytes != kWordLineBytes;
  return made;
}

void StraightTablesOnDevice::writeTo(char *memory) const {
  StraightOperand none;
  none.place = kNoPlace;
  for (const StraightTables &tables : blocks) {
    // Rows of nothing stand where a thread block has fewer steps or operands.
    copyTo(memory, 0, tables.steps, layout.maxSteps); // without pieces
    copyTo(memory, layout.piecesAt, tables.pieces);
    copyTo(memory, layout.operandsAt, tables.operands, layout.maxOperands, none);
    copyTo(memory, layout.obstaclesAt, tables.obstacles);
    memory += layout.stride;
  }
}

} // namespace occl::cuda
