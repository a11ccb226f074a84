#include "compiler/analysis/Dependences.h"
#include "compiler/analysis/ListScheduler.h"
#include "compiler/passes/DeadStores.h"
#include "compiler/passes/Passes.h"
#include "compiler/passes/ProgramPass.h"

namespace occl::passes {
#define GEN_PASS_DEF_INSTFUSE
#include "compiler/passes/Passes.h.inc"
} // namespace occl::passes

using namespace mlir;
using namespace occl;
using namespace occl::analysis;
using inst::Instruction;
using inst::Place;
using inst::PlaceKind;

namespace {

bool receives(const Instruction &instruction) {
  return !llvm::all_of(instruction.sources, [](Place place) { return place.isLocal(); });
}

bool copiesLocally(const Instruction &instruction) {
  return opcodeOf(instruction) == plan::Opcode::Copy;
}

/// The step whose local result is exactly the one source of `step`; nothing if there is none.
std::optional<uint32_t> exactProducer(const Rank &rank, const RankDependences &dependences,
                                      uint32_t step) {
  llvm::ArrayRef<uint32_t> producers = dependences.producers(step);
  if (producers.size() != 1)
    return std::nullopt;
  const Instruction &consumer = rank.steps[step].instruction;
  const Instruction &producer = rank.steps[producers.front()].instruction;
  if (*producer.localDestination() != consumer.sources.front() || producer.count != consumer.count)
    return std::nullopt;
  return producers.front();
}

/// Rule 1: lets the producer of a value store it where a copy would take it.
class CopyForwarding {
public:
  CopyForwarding(const Program &program, Rank &rank)
      : program(program), rank(rank), dependences(program, rank),
        consumers(consumersOf(rank, dependences)), computedBy(rank.steps.size()) {
    for (uint32_t i = 0; i < computedBy.size(); ++i)
      computedBy[i] = i;
  }

  void run() {
    std::vector<bool> erased(rank.steps.size());
    for (uint32_t i = 0; i < rank.steps.size(); ++i)
      if (copiesLocally(rank.steps[i].instruction))
        erased[i] = forward(i);
    eraseSteps(rank, erased);
  }

private:
  bool forward(uint32_t copy) {
    auto producer = exactProducer(rank, dependences, copy);
    const Place target = *rank.steps[copy].instruction.localDestination();
    if (!producer || consumers[*producer].size() != 1 ||
        rank.steps[copy].instruction.sources.front().kind != PlaceKind::Scratch)
      return false;
    // Nothing between the two may touch the target.
    uint32_t origin = computedBy[*producer];
    for (uint32_t before : dependences.before(copy))
      if (before > origin && before != *producer)
        return false;
    Instruction &instruction = rank.steps[origin].instruction;
    Range range = rangeOf(program, rank, target, instruction.count);
    for (Place place : instruction.sources) {
      if (!place.isLocal())
        continue;
      Range source = rangeOf(program, rank, place, instruction.count);
      if (source.overlaps(range) && source != range)
        return false;
    }
    for (Place &place : instruction.destinations)
      if (place.isLocal())
        place = target;
    computedBy[copy] = origin;
    return true;
  }

  const Program &program;
  Rank &rank;
  RankDependences dependences;
  std::vector<llvm::SmallVector<uint32_t, 2>> consumers;
  /// The step that now stores what a step stored: another one for copies that are gone.
  std::vector<uint32_t> computedBy;
};

/// Rule 2: makes sends of what an instruction received or reduced from others its own destinations.
class SendFusion {
public:
  SendFusion(const Program &program, const Network &network, Rank &rank,
             const std::vector<bool> &apart)
      : network(network), rank(rank), apart(apart), dependences(program, rank) {}

  void run() {
    std::vector<bool> erased(rank.steps.size());
    for (uint32_t i = 0; i < rank.steps.size(); ++i)
      if (opcodeOf(rank.steps[i].instruction) == plan::Opcode::Send)
        erased[i] = fuse(i);
    eraseSteps(rank, erased);
  }

private:
  /// Fuses a send into its producer, or notes where it stands.
  bool fuse(uint32_t send) {
    auto producer = exactProducer(rank, dependences, send);
    const inst::Places &transfers = rank.steps[send].instruction.destinations;
    bool possible =
        producer && receives(rank.steps[*producer].instruction) &&
        llvm::all_of(transfers, [&](Place place) {
          auto last = lastSender.find(network.connectionOf(place));
          return !apart[place.index] && (last == lastSender.end() || last->second < *producer);
        });
    for (Place place : transfers)
      lastSender[network.connectionOf(place)] = possible ? *producer : send;
    if (possible)
      rank.steps[*producer].instruction.destinations.append(transfers.begin(), transfers.end());
    return possible;
  }

  const Network &network;
  Rank &rank;
  const std::vector<bool> &apart; // transfers that must not be fused
  RankDependences dependences;
  /// For each connection, the step that sent on it last, as of now.
  llvm::DenseMap<uint32_t, uint32_t> lastSender;
};

Program fuse(const Program &original, const std::vector<bool> &apart) {
  Program program = original;
  Network network(program);
  for (Rank &rank : program.ranks) {
    CopyForwarding(program, rank).run();
    SendFusion(program, network, rank, apart).run();
    passes::dropDeadStores(program, rank);
  }
  return program;
}

/// Separates, in `apart`, the sends that are part of the steps which are stuck. False if there are
/// none.
bool separate(const Program &program, llvm::ArrayRef<uint32_t> stuck, std::vector<bool> &apart) {
  StepGraph graph(program, Network(program), MessageOrder::Program);
  bool found = false;
  for (uint32_t step : stuck) {
    const Rank &rank = program.ranks[graph.rankOf(step)];
    const Instruction &instruction = rank.steps[graph.positionOf(step)].instruction;
    if (!receives(instruction))
      continue;
    forEachMessage(instruction.destinations, [&](const Place &place) {
      apart[place.index] = true;
      found = true;
    });
  }
  return found;
}

class InstFusePass : public passes::impl::InstFuseBase<InstFusePass> {
  void runOnOperation() override {
    auto transform = [](Program &program, inst::ProgramOp op) {
      if (failed(passes::requireTransfers(op)))
        return failure();
      // A few rounds find the culprits of usual programs; then nothing is fused.
      constexpr unsigned kRounds = 8;
      std::vector<bool> apart(program.numTransfers);
      for (unsigned round = 0; round < kRounds; ++round) {
        Program fused = fuse(program, apart);
        std::vector<uint32_t> stuck;
        if (completes(fused, fused.depth, &stuck)) {
          program = std::move(fused);
          break;
        }
        if (!separate(fused, stuck, apart))
          apart.assign(program.numTransfers, true);
      }
      for (Rank &rank : program.ranks)
        passes::compactScratch(rank);
      return success();
    };
    if (failed(passes::transformPrograms(getOperation(), transform)))
      signalPassFailure();
  }
};

} // namespace
