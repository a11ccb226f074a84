#include "compiler/passes/FusionRules.h"

#include "compiler/analysis/Dependences.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"

#include <optional>

using namespace occl;
using namespace occl::analysis;
using inst::Instruction;
using inst::Place;
using inst::PlaceKind;

bool passes::receives(const Instruction &instruction) {
  return !llvm::all_of(instruction.sources, [](Place place) { return place.isLocal(); });
}

namespace {

/// The step whose local result is exactly the one source of `step`; nothing if there is none.
std::optional<uint32_t> exactProducer(const Rank &rank, const RankDependences &dependences,
                                      uint32_t step) {
  llvm::ArrayRef<uint32_t> producers = dependences.producers(step);
  if (producers.size() != 1)
    return std::nullopt;
  const Instruction &consumer = rank.steps[step].instruction;
  const Instruction &producer = rank.steps[producers.front()].instruction;
  if (*producer.localDestination() != consumer.sources.front() ||
      producer.count != consumer.count || producer.extent != consumer.extent)
    return std::nullopt;
  return producers.front();
}

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
      if (opcodeOf(rank.steps[i].instruction) == plan::Opcode::Copy)
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
    if (!agreeOnBlock(instruction, rank.steps[copy].instruction))
      return false;
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
    joinHints(instruction, rank.steps[copy].instruction);
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

class ReceiveAbsorption {
public:
  ReceiveAbsorption(const Program &program, const Network &network, Rank &rank,
                    const std::vector<bool> &apart)
      : program(program), network(network), rank(rank), apart(apart), dependences(program, rank),
        consumers(consumersOf(rank, dependences)) {}

  /// Backwards, to know which message of a connection comes next.
  void run() {
    std::vector<bool> erased(rank.steps.size());
    for (uint32_t i = static_cast<uint32_t>(rank.steps.size()); i-- > 0;) {
      uint32_t position = i;
      if (opcodeOf(rank.steps[i].instruction) == plan::Opcode::Recv && absorb(i)) {
        erased[i] = true;
        position = consumers[i].front();
      }
      forEachMessage(rank.steps[i].instruction.sources, [&](const Place &place) {
        nextReceiver[network.connectionOf(place)] = position;
      });
    }
    eraseSteps(rank, erased);
  }

private:
  bool absorb(uint32_t receive) {
    const Place transfer = rank.steps[receive].instruction.sources.front();
    const Place stored = *rank.steps[receive].instruction.localDestination();
    uint32_t count = rank.steps[receive].instruction.count;
    if (consumers[receive].size() != 1 || stored.kind != PlaceKind::Scratch ||
        apart[transfer.index])
      return false;
    uint32_t consumer = consumers[receive].front();
    Instruction &reduction = rank.steps[consumer].instruction;
    auto next = nextReceiver.find(network.connectionOf(transfer));
    if (!agreeOnBlock(reduction, rank.steps[receive].instruction) || reduction.sources.size() < 2 ||
        reduction.count != count || reduction.extent != rank.steps[receive].instruction.extent ||
        (next != nextReceiver.end() && next->second <= consumer))
      return false;
    Place *source = onlySource(reduction, rangeOf(program, rank, stored, count), stored);
    if (!source)
      return false;
    *source = transfer;
    joinHints(reduction, rank.steps[receive].instruction);
    return true;
  }

  /// The source of the reduction that is `place`, unless others overlap its range.
  Place *onlySource(Instruction &reduction, const Range &range, Place place) const {
    Place *found = nullptr;
    unsigned overlapping = 0;
    for (Place &source : reduction.sources) {
      if (!source.isLocal() || !rangeOf(program, rank, source, reduction.count).overlaps(range))
        continue;
      ++overlapping;
      found = source == place ? &source : nullptr;
    }
    return overlapping == 1 ? found : nullptr;
  }

  const Program &program;
  const Network &network;
  Rank &rank;
  const std::vector<bool> &apart;
  RankDependences dependences;
  std::vector<llvm::SmallVector<uint32_t, 2>> consumers;
  /// For each connection, the step that receives its next message, as of now.
  llvm::DenseMap<uint32_t, uint32_t> nextReceiver;
};

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
        producer && passes::receives(rank.steps[*producer].instruction) &&
        agreeOnBlock(rank.steps[*producer].instruction, rank.steps[send].instruction) &&
        llvm::all_of(transfers, [&](Place place) {
          auto last = lastSender.find(network.connectionOf(place));
          return !apart[place.index] && (last == lastSender.end() || last->second < *producer);
        });
    for (Place place : transfers)
      lastSender[network.connectionOf(place)] = possible ? *producer : send;
    if (!possible)
      return false;
    Instruction &fused = rank.steps[*producer].instruction;
    fused.destinations.append(transfers.begin(), transfers.end());
    joinHints(fused, rank.steps[send].instruction);
    return true;
  }

  const Network &network;
  Rank &rank;
  const std::vector<bool> &apart; // transfers that must not be fused
  RankDependences dependences;
  /// For each connection, the step that sent on it last, as of now.
  llvm::DenseMap<uint32_t, uint32_t> lastSender;
};

} // namespace

void passes::forwardCopies(const Program &program, Rank &rank) {
  CopyForwarding(program, rank).run();
}

void passes::absorbReceives(const Program &program, const Network &network, Rank &rank,
                            const std::vector<bool> &apart) {
  ReceiveAbsorption(program, network, rank, apart).run();
}

void passes::fuseSends(const Program &program, const Network &network, Rank &rank,
                       const std::vector<bool> &apart) {
  SendFusion(program, network, rank, apart).run();
}
