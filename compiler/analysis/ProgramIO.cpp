#include "compiler/analysis/ProgramIO.h"

#include "compiler/dialect/KeptData.h"
#include "compiler/dialect/ProgramHeader.h"

#include <optional>
#include <utility>

using namespace mlir;

namespace occl::analysis {

using KeptProgram = dialect::KeptData<inst::InstDialect, inst::ProgramOp, Program>;

static void readRank(inst::RankOp op, Rank &rank) {
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
  }
}

static void countTransfers(Program &program) {
  program.numTransfers = 0;
  for (const Rank &rank : program.ranks)
    for (const Step &step : rank.steps)
      forEachMessage(step.instruction.destinations, [&](const inst::Place &place) {
        if (place.kind == inst::PlaceKind::Transfer)
          program.numTransfers = std::max(program.numTransfers, place.index + 1);
      });
}

static void readHeader(inst::ProgramOp op, const dialect::ProgramHeader &header, Program &program) {
  program.partChunks = static_cast<uint32_t>(header.partChunks);
  program.outOfPlace = header.outOfPlace;
  program.inPlace = header.inPlace;
  program.uniformChunks = op.getUniformChunks();
  program.depth = static_cast<uint32_t>(header.depth);
  program.defaultChannel = static_cast<uint32_t>(std::max(0, header.channel));
  program.ranks.resize(static_cast<size_t>(header.numRanks));
  for (auto [r, rank] : llvm::enumerate(program.ranks)) {
    rank.inputChunks = static_cast<uint32_t>(header.inputChunks[r]);
    rank.outputChunks = static_cast<uint32_t>(header.outputChunks[r]);
    rank.scratchChunks = static_cast<uint32_t>(header.scratchChunks[r]);
    rank.inPlaceOffset = header.inPlaceOffsets[r];
  }
}

static void readSteps(inst::ProgramOp op, Program &program) {
  program.connections = *inst::unflattenConnections(op.getConnections());
  for (inst::RankOp rank : op.getBody().getOps<inst::RankOp>())
    readRank(rank, program.ranks[rank.getRank()]);
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

static void writeRanks(const Program &program, inst::ProgramOp op) {
  OpBuilder builder = OpBuilder::atBlockEnd(&op.getBody().front());
  for (auto [index, rank] : llvm::enumerate(program.ranks))
    writeRank(rank, static_cast<uint32_t>(index), builder, op.getLoc());
}

void keepPrograms(MLIRContext &context) { KeptProgram::begin(context); }

Program takeProgram(inst::ProgramOp op) {
  dialect::ProgramHeader header = dialect::headerOf(op);
  std::optional<Program> kept = KeptProgram::take(op);
  Program program = kept ? std::move(*kept) : Program();
  readHeader(op, header, program);
  if (!kept) {
    readSteps(op, program);
    countTransfers(program);
  }
  return program;
}

void storeProgram(Program &&program, inst::ProgramOp op) {
  std::vector<int32_t> scratchChunks;
  for (const Rank &rank : program.ranks)
    scratchChunks.push_back(static_cast<int32_t>(rank.scratchChunks));
  op.setScratchChunks(scratchChunks);
  op.setDepth(program.depth);
  op.setUniformChunks(program.uniformChunks);
  op.setConnections(inst::flatten(program.connections));
  op.getBody().front().clear();
  if (!KeptProgram::store(std::move(program), op))
    writeRanks(program, op);
}

void writeKeptPrograms(MLIRContext &context) {
  if (auto [op, program] = KeptProgram::end(context); op)
    writeRanks(program, op);
}

} // namespace occl::analysis
