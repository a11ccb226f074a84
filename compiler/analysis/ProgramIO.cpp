#include "compiler/analysis/ProgramIO.h"

#include "compiler/dialect/ProgramHeader.h"

#include <algorithm>
#include <optional>
#include <utility>

using namespace mlir;

namespace occl::analysis {

static void readHeader(inst::ProgramOp op, Program &program) {
  // Only what analyses ask for; the rest of the header stays with the op and needs no copy.
  const dialect::ProgramHeader header = dialect::headerOf(op);
  program.partChunks = static_cast<uint32_t>(header.partChunks);
  program.outOfPlace = header.outOfPlace;
  program.inPlace = header.inPlace;
  program.uniformChunks = op.getUniformChunks();
  program.depth = static_cast<uint32_t>(header.depth);
  // -1 in the IR is "no channel of its own", which is channel 0.
  program.defaultChannel = static_cast<uint32_t>(std::max(0, header.channel));
  program.connections = *inst::unflattenConnections(op.getConnections());
  program.ranks.resize(static_cast<size_t>(header.numRanks));
  for (auto [r, rank] : llvm::enumerate(program.ranks)) {
    rank.inputChunks = static_cast<uint32_t>(header.inputChunks[r]);
    rank.outputChunks = static_cast<uint32_t>(header.outputChunks[r]);
    rank.scratchChunks = static_cast<uint32_t>(header.scratchChunks[r]);
    rank.inPlaceOffset = header.inPlaceOffsets[r];
  }
}

/// One more than the largest identifier of a transfer.
static uint32_t boundOfTransfers(const Program &program) {
  // Each rank by itself, then the largest of these: ranks are independent, and this pass over all
  // steps is worth threads.
  std::vector<uint32_t> bounds(program.ranks.size());
  forEachRankAtOnce(program, [&](uint32_t r) {
    uint32_t bound = 0;
    auto consider = [&](const inst::Place &place) {
      if (place.kind == inst::PlaceKind::Transfer)
        bound = std::max(bound, place.index + 1);
    };
    for (const Step &step : program.ranks[r].steps) {
      forEachMessage(step.instruction.sources, consider);
      forEachMessage(step.instruction.destinations, consider);
    }
    bounds[r] = bound;
  });
  return bounds.empty() ? 0 : *std::max_element(bounds.begin(), bounds.end());
}

Program takeProgram(inst::ProgramOp op) {
  Program program;
  readHeader(op, program);
  for (inst::RankOp rank : op.getOps<inst::RankOp>())
    // Steps are moved out, not copied, and the op is empty until they are stored again.
    program.ranks[rank.getRank()].steps = std::exchange(rank.getMutableSteps(), {});
  // Passes leave the bound behind for the next one; IR that was written by hand has none.
  const std::optional<uint32_t> bound = op.getTransferBound();
  program.numTransfers = bound ? *bound : boundOfTransfers(program);
  return program;
}

void storeProgram(Program &&program, inst::ProgramOp op) {
  // Back into the op: what passes may have changed. Sizes of input and output never change.
  std::vector<int32_t> scratchChunks;
  for (const Rank &rank : program.ranks)
    scratchChunks.push_back(static_cast<int32_t>(rank.scratchChunks));
  op.setScratchChunks(scratchChunks);
  op.setDepth(program.depth);
  op.setUniformChunks(program.uniformChunks);
  op.setConnections(inst::flatten(program.connections));
  op.setTransferBound(program.numTransfers);
  Block &body = op.getBody().front();
  // Lowering makes a program without rank ops, and there is one for each rank from then on.
  if (body.empty()) {
    OpBuilder builder = OpBuilder::atBlockEnd(&body);
    for (uint32_t r = 0; r < program.ranks.size(); ++r)
      builder.create<inst::RankOp>(op.getLoc(), r);
  }
  // Rank ops are found by their number, whatever order they stand in.
  for (inst::RankOp rank : body.getOps<inst::RankOp>())
    rank.getMutableSteps() = std::move(program.ranks[rank.getRank()].steps);
}

} // namespace occl::analysis
