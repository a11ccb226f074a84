#include "compiler/export/PlanExport.h"

#include "compiler/analysis/ProgramIO.h"
#include "compiler/dialect/ProgramHeader.h"
#include "plan/model/builder.h"

using namespace mlir;

namespace occl::exporter {

using analysis::Program;
using analysis::Rank;
using analysis::Step;

namespace {

void setHeader(plan::Plan &plan, const dialect::ProgramHeader &header, const Program &program) {
  // From the op where passes do not change it, from the program where they do (sizes, depth).
  plan.name = header.algorithm.str();
  plan.collective = header.collective.str();
  for (auto [name, value] : llvm::zip(header.parameterNames, header.parameterValues))
    plan.parameters.push_back({cast<StringAttr>(name).str(), value});
  plan.sourceHash = header.sourceHash.str();
  plan.partChunks = program.partChunks;
  plan.root = static_cast<uint32_t>(header.root);
  plan.outOfPlace = header.outOfPlace;
  plan.inPlace = header.inPlace;
  plan.uniformChunks = program.uniformChunks;
  plan.protocol = *dialect::parseProtocol(header.protocol);
  plan.depth = program.depth;
  plan.minBytes = static_cast<uint64_t>(header.minBytes);
  plan.maxBytes = static_cast<uint64_t>(header.maxBytes);
}

/// Of the user's own collectives: where something is reduced, something is final, unless a result
/// is reduced further.
bool canAverage(const plan::Plan &plan) {
  if (plan.requirements.empty())
    return true;
  bool reduces = false, isFinal = false;
  for (const plan::Instruction &instruction : plan.instructions) {
    reduces |= instruction.numSources > 1;
    isFinal |= instruction.final;
  }
  return isFinal || !reduces;
}

void addRequirements(plan::PlanBuilder &builder, llvm::ArrayRef<int32_t> flat) {
  // Four numbers, then two for each contribution; see verifyRequirements() of the dialects, which
  // has checked them.
  std::vector<plan::Contribution> contributions;
  while (!flat.empty()) {
    contributions.clear();
    llvm::ArrayRef<int32_t> rest = flat.slice(4, 2 * static_cast<size_t>(flat[3]));
    for (size_t i = 0; i < rest.size(); i += 2)
      contributions.push_back({static_cast<uint32_t>(rest[i]), static_cast<uint32_t>(rest[i + 1])});
    builder.addRequirement({.rank = static_cast<uint32_t>(flat[0]),
                            .outputChunk = static_cast<uint32_t>(flat[1]),
                            .count = static_cast<uint32_t>(flat[2])},
                           contributions);
    flat = flat.drop_front(4 + rest.size());
  }
}

/// The first place in a source file that a location names.
FileLineColLoc findPlace(Location location) {
  FileLineColLoc place;
  location->walk([&](Location part) {
    place = dyn_cast<FileLineColLoc>(part);
    return place ? WalkResult::interrupt() : WalkResult::advance();
  });
  return place;
}

/// The plan's numbers of MLIR's locations. There are few, which many steps share.
class Locations {
public:
  explicit Locations(plan::PlanBuilder &builder) : builder(builder) {}

  /// kNoLocation if it names no place in a file.
  uint32_t of(LocationAttr location) {
    // Instructions of one statement share a location: looked up once.
    auto [entry, isNew] = known.try_emplace(location, plan::kNoLocation);
    if (!isNew)
      return entry->second;
    if (FileLineColLoc place = findPlace(location);
        place && place.getLine() > 0 && place.getColumn() > 0)
      entry->second = builder.location(builder.file(place.getFilename().str()), place.getLine(),
                                       place.getColumn());
    return entry->second;
  }

private:
  plan::PlanBuilder &builder;
  llvm::DenseMap<Attribute, uint32_t> known;
};

class RankExport {
public:
  RankExport(plan::PlanBuilder &builder, Locations &locations, const Rank &rank, uint32_t index)
      : builder(builder), locations(locations), rank(rank), index(index),
        positions(rank.steps.size()) {
    // Dependencies name thread block and position within it, so positions must be known before
    // anything is added.
    for (uint32_t i = 0; i < rank.steps.size(); ++i) {
      auto block = static_cast<size_t>(rank.steps[i].instruction.threadBlock);
      if (block >= blocks.size())
        blocks.resize(block + 1);
      positions[i] = static_cast<uint32_t>(blocks[block].size());
      blocks[block].push_back(i);
    }
  }

  void run() {
    builder.beginRank({.inputChunks = rank.inputChunks,
                       .outputChunks = rank.outputChunks,
                       .scratchChunks = rank.scratchChunks,
                       .inPlaceOffset = rank.inPlaceOffset});
    for (const std::vector<uint32_t> &block : blocks) {
      builder.beginThreadBlock();
      for (uint32_t step : block)
        addStep(rank.steps[step]);
    }
  }

private:
  void addStep(const Step &step) {
    // The IR has one number for what a plan says in several fields: a wait's count is the value
    // that it waits for, a signal has none.
    plan::Instruction instruction;
    instruction.opcode = inst::opcodeOf(step.instruction);
    instruction.final = step.instruction.final;
    if (step.instruction.isControl()) {
      instruction.value = step.instruction.sources.empty() ? 0 : step.instruction.count;
    } else {
      instruction.count = step.instruction.count;
      instruction.extent = step.instruction.extent;
    }
    instruction.location = locations.of(step.location);
    // The IR names steps of the rank; the plan, thread block and position.
    llvm::SmallVector<plan::Dependency, 4> dependencies;
    for (uint32_t before : step.dependencies)
      dependencies.push_back(
          {static_cast<uint32_t>(rank.steps[before].instruction.threadBlock), positions[before]});
    builder.addInstruction(instruction, operands(step.instruction.sources),
                           operands(step.instruction.destinations), dependencies);
  }

  llvm::SmallVector<plan::Operand, 4> operands(const inst::Places &places) const {
    llvm::SmallVector<plan::Operand, 4> result;
    for (inst::Place place : places)
      result.push_back(place.isLocal() ? plan::Operand{static_cast<plan::OperandKind>(place.kind),
                                                       place.owner(index), place.index}
                                       : plan::connection(place.index));
    return result;
  }

  plan::PlanBuilder &builder;
  Locations &locations;
  const Rank &rank;
  uint32_t index;
  std::vector<std::vector<uint32_t>> blocks; // steps of each thread block
  std::vector<uint32_t> positions;           // of each step in its thread block
};

LogicalResult checkReady(inst::ProgramOp op, const Program &program) {
  // A program that is not scheduled has no thread blocks; its messages have no connections.
  for (const Rank &rank : program.ranks)
    for (const Step &step : rank.steps)
      if (step.instruction.threadBlock < 0) {
        auto diagnostic = op.emitOpError("cannot become a plan before inst-assign-thread-blocks");
        diagnostic.attachNote(step.location) << "this has no thread block";
        return diagnostic;
      }
  if (hasTransfers(program))
    return op.emitOpError(
        "cannot become a plan before inst-assign-thread-blocks: it has transfers");
  return success();
}

void addConnection(plan::PlanBuilder &builder, const inst::Connection &connection) {
  std::span destinations(connection.destinations.data(), connection.destinations.size());
  if (connection.isCounter)
    builder.addCounter(connection.source, destinations);
  else
    builder.addConnection(connection.source, connection.channel, destinations);
}

plan::Plan planOf(const Program &program, const dialect::ProgramHeader &header) {
  plan::PlanBuilder builder;
  // In the order that the builder wants: header, connections, ranks, requirements.
  setHeader(builder.header(), header, program);
  for (const inst::Connection &connection : program.connections)
    addConnection(builder, connection);
  Locations locations(builder);
  for (auto [index, rank] : llvm::enumerate(program.ranks))
    RankExport(builder, locations, rank, static_cast<uint32_t>(index)).run();
  addRequirements(builder, header.requirements);
  plan::Plan plan = std::move(builder).take();
  // Found by looking at the finished instructions.
  plan.average = canAverage(plan);
  return plan;
}

} // namespace

FailureOr<plan::Plan> exportPlan(inst::ProgramOp op) {
  Program program = analysis::takeProgram(op);
  FailureOr<plan::Plan> plan = failure();
  if (succeeded(checkReady(op, program)))
    plan = planOf(program, dialect::headerOf(op));
  analysis::storeProgram(std::move(program), op);
  return plan;
}

} // namespace occl::exporter
