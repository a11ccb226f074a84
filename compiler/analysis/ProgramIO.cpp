#include "compiler/analysis/ProgramIO.h"

#include "compiler/dialect/ProgramHeader.h"

using namespace mlir;

namespace occl::analysis {

static void readRank(inst::RankOp op, Program &program, Rank &rank) {
  llvm::DenseMap<Operation *, uint32_t> positions;
  for (Operation &operation : op.getBody().front()) {
    auto instruction = cast<inst::InstructionOpInterface>(operation);
    Step &step = rank.steps.emplace_back();
    step.instruction = instruction.getData();
    step.location = operation.getLoc().getAsOpaquePointer();
    for (Value token : operation.getOperands())
      step.dependencies.push_back(positions.lookup(token.getDefiningOp()));
    llvm::sort(step.dependencies);
    if (!operation.use_empty())
      positions[&operation] = static_cast<uint32_t>(rank.steps.size() - 1);
    auto count = [&](const inst::Place &place) {
      if (place.kind == inst::PlaceKind::Transfer)
        program.numTransfers = std::max(program.numTransfers, place.index + 1);
    };
    forEachMessage(step.instruction.destinations, count);
  }
}

Program readProgram(inst::ProgramOp op) {
  dialect::ProgramHeader header = dialect::headerOf(op);
  Program program;
  program.partChunks = static_cast<uint32_t>(header.partChunks);
  program.inPlace = header.inPlace;
  program.uniformChunks = op.getUniformChunks();
  program.depth = static_cast<uint32_t>(header.depth);
  program.defaultChannel = static_cast<uint32_t>(std::max(0, header.channel));
  program.connections = *inst::unflattenConnections(op.getConnections());
  for (inst::RankOp rankOp : op.getBody().getOps<inst::RankOp>()) {
    size_t r = program.ranks.size();
    Rank &rank = program.ranks.emplace_back();
    rank.inputChunks = static_cast<uint32_t>(header.inputChunks[r]);
    rank.outputChunks = static_cast<uint32_t>(header.outputChunks[r]);
    rank.scratchChunks = static_cast<uint32_t>(header.scratchChunks[r]);
    rank.inPlaceOffset = header.inPlaceOffsets[r];
    readRank(rankOp, program, rank);
  }
  return program;
}

static void writeRank(const Rank &rank, uint32_t index, OpBuilder &builder, Location location) {
  auto op = builder.create<inst::RankOp>(location, index);
  OpBuilder body = OpBuilder::atBlockEnd(&op.getBody().emplaceBlock());
  Type token = inst::TokenType::get(builder.getContext());
  std::vector<Value> tokens;
  tokens.reserve(rank.steps.size());
  for (const Step &step : rank.steps) {
    OperationState state(Location::getFromOpaquePointer(step.location),
                         inst::operationName(opcodeOf(step.instruction)));
    // All instruction ops have the same properties type up to its name; the record is set through
    // the interface.
    for (uint32_t dependency : step.dependencies)
      state.operands.push_back(tokens[dependency]);
    state.addTypes(token);
    Operation *operation = body.create(state);
    cast<inst::InstructionOpInterface>(operation).getData() = step.instruction;
    tokens.push_back(operation->getResult(0));
  }
}

void writeProgram(const Program &program, inst::ProgramOp op) {
  Block &body = op.getBody().front();
  body.clear();
  OpBuilder builder = OpBuilder::atBlockEnd(&body);
  std::vector<int32_t> scratchChunks;
  for (auto [index, rank] : llvm::enumerate(program.ranks)) {
    scratchChunks.push_back(static_cast<int32_t>(rank.scratchChunks));
    writeRank(rank, static_cast<uint32_t>(index), builder, op.getLoc());
  }
  op.setScratchChunks(scratchChunks);
  op.setDepth(program.depth);
  op.setUniformChunks(program.uniformChunks);
  op.setConnections(inst::flatten(program.connections));
}

} // namespace occl::analysis
