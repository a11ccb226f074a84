#include "compiler/passes/fusion/FusionRules.h"

#include "compiler/analysis/AccessMap.h"
#include "compiler/analysis/Dependences.h"
#include "plan/model/limits.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"

#include <map>
#include <utility>

using namespace occl;
using namespace occl::analysis;
using inst::Instruction;
using inst::Place;
using inst::PlaceKind;

bool passes::receives(const Instruction &instruction) {
  return !llvm::all_of(instruction.sources, [](Place place) { return place.isLocal(); });
}

std::optional<uint32_t> passes::exactProducer(const Rank &rank, const RankDependences &dependences,
                                              uint32_t step) {
  // One producer, of exactly the range that is read: then the two instructions are about the same
  // chunks.
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

namespace {

constexpr uint32_t kNone = ~0u;

/// The sources of a reduction that has or gets many, some of which give way to others: each is
/// found and replaced in the time of a look-up, so that a reduction of n sources takes near linear
/// time.
class ManySources {
public:
  ManySources(const Program &program, const Rank &rank, const Instruction &reduction)
      : program(program), rank(rank), count(reduction.count) {
    for (const Place &place : reduction.sources)
      append(place, static_cast<uint32_t>(nodes.size()) - 1);
  }

  size_t size() const { return nodes.size(); }
  bool isFirst(uint32_t node) const { return node == 0; }

  /// The source that is `place`, unless others overlap its range.
  std::optional<uint32_t> only(Place place) const {
    // Sources are sorted by where they lie; those that could overlap are neighbours.
    Range range = rangeOf(program, rank, place, count);
    auto found = local.upper_bound({range.space, range.begin - count});
    auto isNear = [&] {
      return found != local.end() && found->first.first == range.space &&
             found->first.second < range.end;
    };
    if (!isNear() || nodes[found->second].place != place)
      return std::nullopt;
    uint32_t node = found->second;
    ++found;
    return isNear() ? std::nullopt : std::optional(node);
  }

  /// Puts `places`, of which there is one at least, where a local source is.
  void replace(uint32_t node, llvm::ArrayRef<Place> places) {
    Range range = rangeOf(program, rank, nodes[node].place, count);
    local.erase(local.find({range.space, range.begin}));
    nodes[node].place = places.front();
    note(node);
    for (Place place : places.drop_front())
      node = append(place, node);
  }

  inst::Places list() const {
    inst::Places places;
    for (uint32_t node = 0; node != kNone; node = nodes[node].next)
      places.push_back(nodes[node].place);
    return places;
  }

private:
  struct Node {
    Place place;
    uint32_t next = kNone;
  };

  /// Adds a source behind a node; as the first one if there is none.
  uint32_t append(Place place, uint32_t previous) {
    auto node = static_cast<uint32_t>(nodes.size());
    nodes.push_back({place, node == 0 ? kNone : std::exchange(nodes[previous].next, node)});
    note(node);
    return node;
  }

  void note(uint32_t node) {
    if (!nodes[node].place.isLocal())
      return;
    Range range = rangeOf(program, rank, nodes[node].place, count);
    local.emplace(std::pair(range.space, range.begin), node);
  }

  const Program &program;
  const Rank &rank;
  int64_t count;
  std::vector<Node> nodes; // the first one stays the first
  /// Local ones, which are of `count` chunks each, by space and first chunk.
  std::multimap<std::pair<uint32_t, int64_t>, uint32_t> local;
};

/// Rules 2 and 3: lets a reduction do what computes one of its sources.
class Absorption {
public:
  Absorption(const Program &program, const Network &network, Rank &rank,
             const passes::FusionOptions &options)
      : program(program), network(network), rank(rank), options(options),
        dependences(program, rank), consumers(consumersOf(rank, dependences)),
        doneBy(rank.steps.size()) {}

  /// Backwards, to know which message of a connection comes next, and what is overwritten next.
  void run() {
    // From the end: a consumer is final before its producers are looked at, so that chains are
    // absorbed into their last reduction.
    std::vector<bool> erased(rank.steps.size());
    for (uint32_t i = static_cast<uint32_t>(rank.steps.size()); i-- > 0;) {
      const Instruction &instruction = rank.steps[i].instruction;
      doneBy[i] = i;
      // Its only consumer takes it in.
      if (consumers[i].size() == 1 && absorb(instruction, doneBy[consumers[i].front()])) {
        erased[i] = true;
        doneBy[i] = doneBy[consumers[i].front()];
      } else if (const Place *target = instruction.localDestination()) {
        // Otherwise it stays, and is what overwrites its target.
        Range range = rangeOf(program, rank, *target, instruction.count);
        nextWriter[range.space].assign(range.begin, range.end, i);
      }
      // Messages are received in this order at this end.
      forEachMessage(instruction.sources, [&](const Place &place) {
        nextReceiver[network.connectionOf(place)] = doneBy[i];
      });
    }
    // Long lists of sources are kept apart until the end, as inserting into them costs their
    // length.
    for (auto &[reduction, sources] : manySources)
      rank.steps[reduction].instruction.sources = sources.list();
    eraseSteps(rank, erased);
  }

private:
  /// Reductions of more sources have them in a ManySources; fewer are gone through faster.
  static constexpr size_t kFewSources = 16;

  bool absorb(const Instruction &instruction, uint32_t consumer) {
    // One destination, the same chunks, the same thread block; and the result is not needed
    // anywhere else.
    Instruction &reduction = rank.steps[consumer].instruction;
    if (instruction.destinations.size() != 1 || reduction.sources.size() < 2 ||
        reduction.count != instruction.count || reduction.extent != instruction.extent ||
        !agreeOnBlock(reduction, instruction) ||
        (!options.foldArrivals && passes::receives(instruction)))
      return false;
    const Place stored = instruction.destinations.front();
    // Scratch that only this one reads, or what the reduction overwrites itself.
    bool isDead = stored.kind == PlaceKind::Scratch ||
                  (reduction.localDestination() && *reduction.localDestination() == stored);
    if (!isDead || !replaceSource(instruction, consumer))
      return false;
    joinHints(reduction, instruction);
    return true;
  }

  /// Puts the instruction's sources where the reduction reads its result, if it may.
  bool replaceSource(const Instruction &instruction, uint32_t consumer) {
    // The place of the source stays, as the order of a reduction is part of its result.
    Instruction &reduction = rank.steps[consumer].instruction;
    const Place stored = instruction.destinations.front();
    if (ManySources *sources = manySourcesOf(consumer)) {
      std::optional<uint32_t> source = sources->only(stored);
      if (!source || !canAbsorb(instruction, consumer, sources->isFirst(*source), sources->size()))
        return false;
      sources->replace(*source, instruction.sources);
      return true;
    }
    Place *source = onlySource(reduction, stored);
    if (!source || !canAbsorb(instruction, consumer, source == reduction.sources.begin(),
                              reduction.sources.size()))
      return false;
    // Its one source is replaced by the sources of the other.
    source = reduction.sources.erase(source);
    reduction.sources.insert(source, instruction.sources.begin(), instruction.sources.end());
    return true;
  }

  /// Of a reduction that has many sources; else null.
  ManySources *manySourcesOf(uint32_t consumer) {
    const Instruction &reduction = rank.steps[consumer].instruction;
    if (reduction.sources.size() <= kFewSources)
      return nullptr;
    return &manySources.try_emplace(consumer, program, rank, reduction).first->second;
  }

  /// Whether the source that the instruction stores, one of `numSources` of the consumer, can give
  /// way to what it is computed from.
  bool canAbsorb(const Instruction &instruction, uint32_t consumer, bool isFirst,
                 size_t numSources) {
    return isKept(instruction.destinations.front(), instruction.count, consumer) &&
           canReceiveLater(instruction, consumer) &&
           (opcodeOf(instruction) == plan::Opcode::Recv ||
            (isFirst && canReduceLater(instruction, consumer, numSources)));
  }

  /// Whether the instruction's messages can be received where the consumer stands: not after later
  /// ones of their connections.
  bool canReceiveLater(const Instruction &instruction, uint32_t consumer) const {
    return llvm::all_of(instruction.sources, [&](Place place) {
      if (place.isLocal())
        return true;
      auto next = nextReceiver.find(network.connectionOf(place));
      return !options.apart[place.index] && (next == nextReceiver.end() || next->second > consumer);
    });
  }

  /// Whether a reduction (or a copy) that is the first source of another can be a part of it: it
  /// may go without rounding its result, and what it reads is still there.
  bool canReduceLater(const Instruction &instruction, uint32_t consumer, size_t numSources) {
    const Instruction &reduction = rank.steps[consumer].instruction;
    // Sums of 16-bit floats are rounded after each instruction: with fewer of them, the result has
    // other bits.
    if (instruction.sources.size() > 1 && !options.reassociate)
      return false;
    // A plan's instruction has a limit of operands.
    size_t operands = instruction.sources.size() + numSources - 1 + reduction.destinations.size();
    if (instruction.final || operands > plan::limits::kMaxOperands)
      return false;
    // What it reads must still be there when the reduction runs.
    return llvm::all_of(instruction.sources, [&](Place place) {
      return !place.isLocal() || isUnchanged(place, instruction.count, consumer);
    });
  }

  /// Whether nobody writes to a part of the place before the consumer.
  bool isKept(Place place, uint32_t count, uint32_t consumer) {
    Range range = rangeOf(program, rank, place, count);
    bool kept = true;
    nextWriter[range.space].forEach(range.begin, range.end, [&](int64_t, int64_t, uint32_t writer) {
      kept &= writer >= consumer;
    });
    return kept;
  }

  /// Whether nobody writes to the place before the consumer, nor the consumer to a part of it.
  bool isUnchanged(Place place, uint32_t count, uint32_t consumer) {
    Range range = rangeOf(program, rank, place, count);
    const Place *target = rank.steps[consumer].instruction.localDestination();
    if (!target)
      return isKept(place, count, consumer);
    Range written = rangeOf(program, rank, *target, count);
    return isKept(place, count, consumer) && (!written.overlaps(range) || written == range);
  }

  /// The source of the reduction that is `place`, unless others overlap its range.
  Place *onlySource(Instruction &reduction, Place place) const {
    // Another source that overlaps would read a part of what is not stored any more.
    Range range = rangeOf(program, rank, place, reduction.count);
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
  const passes::FusionOptions &options;
  RankDependences dependences;
  std::vector<llvm::SmallVector<uint32_t, 2>> consumers;
  std::vector<uint32_t> doneBy; // of each step from here on: the one that does its work
  std::map<uint32_t, ManySources> manySources; // of steps
  /// For each connection, the step that receives its next message, as of now.
  llvm::DenseMap<uint32_t, uint32_t> nextReceiver;
  /// For each space, the step that overwrites a chunk next.
  AccessMap<uint32_t> nextWriter[3] = {AccessMap(kNone), AccessMap(kNone), AccessMap(kNone)};
};

/// Whether an instruction may have a source that another one computes for it: from scratch, or
/// growing in place.
bool mayAbsorb(const Instruction &instruction) {
  return instruction.sources.size() > 1 &&
         (llvm::any_of(instruction.sources,
                       [](Place place) { return place.kind == PlaceKind::Scratch; }) ||
          instruction.sources.front().isLocal());
}

class SendFusion {
public:
  SendFusion(const Program &program, const Network &network, Rank &rank,
             const std::vector<bool> &apart, uint32_t maxFanOut)
      : network(network), rank(rank), apart(apart), dependences(program, rank) {
    if (maxFanOut < plan::limits::kMaxOperands)
      findWide(maxFanOut);
  }

  void run() {
    std::vector<bool> erased(rank.steps.size());
    for (uint32_t i = 0; i < rank.steps.size(); ++i)
      if (opcodeOf(rank.steps[i].instruction) == plan::Opcode::Send)
        erased[i] = fuse(i);
    eraseSteps(rank, erased);
  }

private:
  /// Finds the steps whose results go on in more messages than that.
  void findWide(uint32_t maxFanOut) {
    // Counted over the sends that would be fused: all of them or none.
    std::vector<uint32_t> fanOut(rank.steps.size(), 0);
    for (uint32_t i = 0; i < rank.steps.size(); ++i)
      if (opcodeOf(rank.steps[i].instruction) == plan::Opcode::Send)
        if (auto producer = passes::exactProducer(rank, dependences, i))
          fanOut[*producer] += rank.steps[i].instruction.destinations.size();
    for (uint32_t messages : fanOut)
      isWide.push_back(messages > maxFanOut);
  }

  /// Fuses a send into its producer, or notes where it stands.
  bool fuse(uint32_t send) {
    // The value must come from an instruction that receives: otherwise nothing is gained.
    auto producer = passes::exactProducer(rank, dependences, send);
    const inst::Places &transfers = rank.steps[send].instruction.destinations;
    bool possible =
        producer && passes::receives(rank.steps[*producer].instruction) &&
        (isWide.empty() || !isWide[*producer]) &&
        agreeOnBlock(rank.steps[*producer].instruction, rank.steps[send].instruction) &&
        // The message must not move past another one of its connection.
        llvm::all_of(transfers, [&](Place place) {
          auto last = lastSender.find(network.connectionOf(place));
          return !apart[place.index] && (last == lastSender.end() || last->second < *producer);
        });
    // The next send of the connection must stay behind this one.
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
  std::vector<bool> isWide; // of each step; empty: none is
  /// For each connection, the step that sent on it last, as of now.
  llvm::DenseMap<uint32_t, uint32_t> lastSender;
};

} // namespace

void passes::absorbSources(const Program &program, const Network &network, Rank &rank,
                           const FusionOptions &options) {
  if (llvm::any_of(rank.steps, [](const Step &step) { return mayAbsorb(step.instruction); }))
    Absorption(program, network, rank, options).run();
}

void passes::fuseSends(const Program &program, const Network &network, Rank &rank,
                       const std::vector<bool> &apart, uint32_t maxFanOut) {
  SendFusion(program, network, rank, apart, maxFanOut).run();
}
