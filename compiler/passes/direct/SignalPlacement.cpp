#include "compiler/passes/direct/SignalPlacement.h"

#include "compiler/analysis/AccessMap.h"
#include "compiler/analysis/Dependences.h"

#include "llvm/ADT/STLExtras.h"

#include <array>
#include <map>
#include <set>

namespace occl::passes {

using namespace analysis;
using inst::Instruction;
using inst::Place;
using inst::PlaceKind;

namespace {

constexpr uint32_t kNone = ~0u;

/// The thread blocks of all ranks, numbered; a rank without steps has one.
class Blocks {
public:
  explicit Blocks(const Program &program) {
    // Thread blocks of all ranks numbered through; a rank without steps counts one, so that waits
    // at its end have a place.
    for (const Rank &rank : program.ranks) {
      uint32_t count = 1;
      for (const Step &step : rank.steps)
        count = std::max(count, static_cast<uint32_t>(step.instruction.threadBlock) + 1);
      for (uint32_t b = 0; b < count; ++b)
        rankOf.push_back(static_cast<uint32_t>(first.size()) - 1);
      first.push_back(static_cast<uint32_t>(rankOf.size()));
    }
  }

  uint32_t of(const Program &program, StepRef ref) const {
    return first[ref.rank] +
           static_cast<uint32_t>(program.ranks[ref.rank].steps[ref.step].instruction.threadBlock);
  }
  uint32_t size() const { return first.back(); }
  uint32_t numberInRank(uint32_t block) const { return block - first[rankOf[block]]; }
  /// The thread block of `rank` with the number that `block` has in its rank, or, if there are not
  /// so many, with that number modulo theirs.
  uint32_t like(uint32_t block, uint32_t rank) const {
    return first[rank] + numberInRank(block) % (first[rank + 1] - first[rank]);
  }

  std::vector<uint32_t> first = {0}; // of each rank
  std::vector<uint32_t> rankOf;
};

/// A wait before a step, or at the end of a rank, for a step of another rank.
struct Wait {
  uint32_t signaller; // step in the order
  uint32_t waiter;    // step in the order, or kNone: at the end of `rank`
  uint32_t rank;
  uint32_t block; // that waits
};

/// Which steps of the order wait for which, by vector clocks over all thread blocks.
class Ordering {
public:
  Ordering(Program &program, const std::vector<StepRef> &order)
      : program(program), order(order), blocks(program), current(blocks.size() * blocks.size(), 0),
        complete(order.size() * blocks.size(), 0), memory(program.ranks.size()),
        memoryApart(program.ranks.size()) {
    // Which block each step of the order belongs to.
    for (StepRef ref : order) {
      blockOf.push_back(blocks.of(program, ref));
      anyOntoItself |= copiesOntoItself(ref);
    }
  }

  std::vector<Wait> run() {
    // In one order that completes: each access waits for those before it that conflict with it,
    // unless that is known already.
    for (uint32_t i = 0; i < order.size(); ++i) {
      before.clear();
      // Reads wait for the last write.
      forEachAccess(i, false, [&](Accesses &accesses) {
        if (accesses.writer != kNone)
          before.insert(accesses.writer);
        accesses.readers.push_back(i);
      });
      // Writes wait for the last write and for all reads since.
      forEachAccess(i, true, [&](Accesses &accesses) {
        before.insert(accesses.readers.begin(), accesses.readers.end());
        if (accesses.writer != kNone)
          before.insert(accesses.writer);
        accesses = {i, {}};
      });
      // A step need not wait for itself.
      before.erase(i);
      waitForAll(i);
      finish(i);
    }
    // A rank must not end while others still access its memory.
    for (uint32_t rank = 0; rank < program.ranks.size(); ++rank)
      waitForLastAccesses(rank);
    return std::move(waits);
  }

  const Blocks &threadBlocks() const { return blocks; }
  uint32_t blockOfStep(uint32_t step) const { return blockOf[step]; }

private:
  /// Who wrote a piece of memory last, and who read it since: steps in the order.
  struct Accesses {
    uint32_t writer = kNone;
    llvm::SmallVector<uint32_t, 2> readers;
  };

  const Instruction &instructionAt(StepRef ref) const {
    return program.ranks[ref.rank].steps[ref.step].instruction;
  }

  /// In place a copy may be of a range onto itself; it does nothing then.
  bool copiesOntoItself(StepRef ref) const {
    const Instruction &instruction = instructionAt(ref);
    if (opcodeOf(instruction) != plan::Opcode::Copy)
      return false;
    const Rank &rank = program.ranks[ref.rank];
    return rangeOf(program, rank, instruction.sources.front(), instruction.count) ==
           rangeOf(program, rank, instruction.destinations.front(), instruction.count);
  }

  /// Once for each piece of memory, in the strictest alias mode. Only if something is copied onto
  /// itself, other orders are needed out of place: then also for each piece of the buffers apart.
  template <typename Function> void forEachAccess(uint32_t i, bool writes, Function fn) {
    StepRef ref = order[i];
    const Instruction &instruction = instructionAt(ref);
    // What a copy onto itself has to come before or behind in place, it has to out of place as
    // well.
    const bool doesNothingInPlace = copiesOntoItself(ref);
    for (Place place : writes ? instruction.destinations : instruction.sources) {
      if (!place.isLocal())
        continue;
      uint32_t owner = place.owner(ref.rank);
      // The last access of each rank's memory by each block elsewhere.
      if (owner != ref.rank)
        lastAccesses[owner][blockOf[i]] = lastOfBlock[blockOf[i]] = i;
      auto visit = [&](int64_t, int64_t, Accesses &accesses) { fn(accesses); };
      Range range = rangeOf(program, program.ranks[owner], place, instruction.count);
      if (!doesNothingInPlace)
        memory[owner][range.space].forEach(range.begin, range.end, visit);
      if (anyOntoItself)
        memoryApart[owner][static_cast<size_t>(place.kind)].forEach(
            place.index, int64_t{place.index} + instruction.count, visit);
    }
  }

  uint32_t *clockOf(uint32_t block) { return &current[size_t{block} * blocks.size()]; }
  uint32_t *completeAt(uint32_t step) { return &complete[size_t{step} * blocks.size()]; }
  /// Steps of its block up to and with `step`.
  uint32_t countAt(uint32_t step) { return completeAt(step)[blockOf[step]]; }

  void join(uint32_t block, uint32_t step) {
    for (uint32_t b = 0; b < blocks.size(); ++b)
      clockOf(block)[b] = std::max(clockOf(block)[b], completeAt(step)[b]);
  }

  /// Latest first: what is complete when a later step is may be among the rest.
  void waitForAll(uint32_t i) {
    // The clock tells what is known to be complete.
    uint32_t block = blockOf[i];
    Step &step = program.ranks[order[i].rank].steps[order[i].step];
    for (uint32_t earlier : llvm::reverse(before)) {
      if (clockOf(block)[blockOf[earlier]] >= countAt(earlier))
        continue;
      // On the same rank a dependency does; between ranks it takes a signal.
      if (order[earlier].rank == order[i].rank)
        step.dependencies.push_back(order[earlier].step);
      else
        waits.push_back({earlier, i, order[i].rank, block});
      join(block, earlier);
    }
    llvm::sort(step.dependencies);
  }

  void finish(uint32_t i) {
    uint32_t block = blockOf[i];
    ++clockOf(block)[block];
    std::copy_n(clockOf(block), blocks.size(), completeAt(i));
  }

  /// The rank may not end before its memory is left alone: some thread block of it knows. A thread
  /// block elsewhere says so once for all, after its last access of anybody's memory, and its like
  /// waits for it, so that none waits for the blocks of all ranks.
  void waitForLastAccesses(uint32_t rank) {
    // Blocks elsewhere whose last access nobody of this rank has waited for, by their last access
    // of anything.
    std::set<uint32_t> last;
    auto isKnown = [&](uint32_t step) {
      for (uint32_t b = blocks.first[rank]; b < blocks.first[rank + 1]; ++b)
        if (clockOf(b)[blockOf[step]] >= countAt(step))
          return true;
      return false;
    };
    for (auto [block, step] : lastAccesses[rank])
      if (!isKnown(step))
        last.insert(lastOfBlock[block]);
    // The latest first: a wait may cover others.
    for (uint32_t step : llvm::reverse(last)) {
      if (isKnown(step))
        continue;
      uint32_t waiter = blocks.like(blockOf[step], rank);
      waits.push_back({step, kNone, rank, waiter});
      join(waiter, step);
    }
  }

  Program &program;
  const std::vector<StepRef> &order;
  Blocks blocks;
  std::vector<uint32_t> blockOf; // of each step of the order
  /// A row for each thread block: how many steps of each thread block it knows to be complete.
  std::vector<uint32_t> current;
  std::vector<uint32_t> complete; // the row of its block when a step is complete
  /// Of each rank: by the spaces of rangeOf, and by the kinds of buffers.
  std::vector<std::array<AccessMap<Accesses>, 3>> memory, memoryApart;
  bool anyOntoItself = false;
  std::map<uint32_t, std::map<uint32_t, uint32_t>> lastAccesses; // owner, block elsewhere -> step
  std::map<uint32_t, uint32_t> lastOfBlock; // the last of them, of whatever owner
  std::set<uint32_t> before;
  std::vector<Wait> waits;
};

/// One counter: who signals on it after which steps, and which thread block of which rank waits.
struct Counter {
  std::set<uint32_t> signallers;       // steps in the order
  std::map<uint32_t, uint32_t> waiter; // thread block, by rank
};

class Insertion {
public:
  Insertion(Program &program, const std::vector<StepRef> &order, const Ordering &ordering,
            llvm::ArrayRef<Wait> waits)
      : program(program), order(order), ordering(ordering), waits(waits) {}

  void run() {
    // Waits are given counters first; then values; then steps are inserted, when numbers are final.
    for (const Wait &wait : waits)
      counterOf.push_back(assign(wait));
    connectionOf.resize(counters.size());
    for (const auto &[block, own] : ofBlock)
      for (uint32_t c : own)
        addConnection(c);
    plan();
    for (uint32_t rank = 0; rank < program.ranks.size(); ++rank)
      insert(rank);
  }

private:
  /// What is waited for: counters and their values.
  using Values = std::map<uint32_t, uint32_t>;
  using Where = std::pair<uint32_t, uint32_t>; // rank, step

  /// The first counter of the signalling thread block at whose end on the waiting rank no other
  /// thread block waits.
  uint32_t assign(const Wait &wait) {
    // Counters of one thread block are shared by its signals to different ranks, and by several
    // signals to the same waiter.
    auto &own = ofBlock[ordering.blockOfStep(wait.signaller)];
    for (uint32_t c : own) {
      auto [entry, isNew] = counters[c].waiter.try_emplace(wait.rank, wait.block);
      if (entry->second != wait.block)
        continue;
      counters[c].signallers.insert(wait.signaller);
      return c;
    }
    own.push_back(static_cast<uint32_t>(counters.size()));
    counters.push_back({{wait.signaller}, {{wait.rank, wait.block}}});
    return own.back();
  }

  void addConnection(uint32_t c) {
    // A counter is a connection of its own kind, with a receiver for each rank that waits.
    const Counter &counter = counters[c];
    connectionOf[c] = static_cast<uint32_t>(program.connections.size());
    inst::Connection connection;
    connection.source = order[*counter.signallers.begin()].rank;
    connection.isCounter = true;
    for (auto [rank, block] : counter.waiter)
      connection.destinations.push_back(rank);
    program.connections.push_back(std::move(connection));
  }

  Place placeOf(uint32_t counter) const {
    return {PlaceKind::Connection, -1, connectionOf[counter]};
  }

  /// What comes after and before which steps.
  void plan() {
    // After which steps a counter is signalled.
    for (auto [c, counter] : llvm::enumerate(counters))
      for (uint32_t step : counter.signallers)
        after[{order[step].rank, order[step].step}].push_back(static_cast<uint32_t>(c));
    // A wait is for the number of its signal: signals of a counter are given in the order of steps.
    for (auto [wait, c] : llvm::zip(waits, counterOf)) {
      const std::set<uint32_t> &signallers = counters[c].signallers;
      auto number = static_cast<uint32_t>(
          std::distance(signallers.begin(), signallers.find(wait.signaller)) + 1);
      bool atEnd = wait.waiter == kNone;
      Values &values = atEnd
                           ? waitsAtEnd[wait.rank][ordering.threadBlocks().numberInRank(wait.block)]
                           : waitsBefore[{wait.rank, order[wait.waiter].step}];
      // Of several waits for a counter at one place, the largest value covers the others.
      uint32_t &value = values[c];
      value = std::max(value, number);
    }
  }

  void insert(uint32_t r) {
    // Waits before a step, signals behind it.
    Rank &rank = program.ranks[r];
    std::vector<Step> steps;
    std::vector<uint32_t> newPosition;
    mlir::LocationAttr location = rank.steps.empty() ? anyLocation() : rank.steps.back().location;
    for (uint32_t i = 0; i < rank.steps.size(); ++i) {
      Step &step = rank.steps[i];
      int32_t block = step.instruction.threadBlock;
      const mlir::LocationAttr here = step.location;
      if (auto found = waitsBefore.find({r, i}); found != waitsBefore.end())
        appendWaits(steps, found->second, block, here);
      // Dependencies name positions, which move: those of earlier steps are known.
      newPosition.push_back(static_cast<uint32_t>(steps.size()));
      for (uint32_t &dependency : step.dependencies)
        dependency = newPosition[dependency];
      steps.push_back(std::move(step));
      for (uint32_t counter : after[{r, i}])
        append(steps, {}, {placeOf(counter)}, 1, block, here);
    }
    // Waits at the end of each block that has some.
    for (const auto &[block, values] : waitsAtEnd[r])
      appendWaits(steps, values, static_cast<int32_t>(block), location);
    rank.steps = std::move(steps);
  }

  mlir::LocationAttr anyLocation() const {
    for (const Rank &rank : program.ranks)
      if (!rank.steps.empty())
        return rank.steps.back().location;
    return {};
  }

  /// One wait for each value that is waited for.
  void appendWaits(std::vector<Step> &steps, const Values &values, int32_t block,
                   mlir::LocationAttr location) const {
    // Counters with the same value are waited for together.
    std::map<uint32_t, std::set<uint32_t>> byValue; // connections
    for (auto [counter, value] : values)
      byValue[value].insert(connectionOf[counter]);
    for (const auto &[value, connections] : byValue) {
      inst::Places places;
      for (uint32_t connection : connections)
        places.push_back({PlaceKind::Connection, -1, connection});
      append(steps, std::move(places), {}, value, block, location);
    }
  }

  static void append(std::vector<Step> &steps, inst::Places sources, inst::Places destinations,
                     uint32_t count, int32_t block, mlir::LocationAttr location) {
    Step &step = steps.emplace_back();
    step.instruction.sources = std::move(sources);
    step.instruction.destinations = std::move(destinations);
    step.instruction.count = count;
    step.instruction.threadBlock = block;
    step.location = location;
  }

  Program &program;
  const std::vector<StepRef> &order;
  const Ordering &ordering;
  llvm::ArrayRef<Wait> waits;
  std::vector<Counter> counters;
  std::map<uint32_t, std::vector<uint32_t>> ofBlock; // counters of each signalling thread block
  std::vector<uint32_t> counterOf;                   // of each wait
  std::vector<uint32_t> connectionOf;                // of each counter
  std::map<Where, std::vector<uint32_t>> after;
  std::map<Where, Values> waitsBefore;
  std::map<uint32_t, std::map<uint32_t, Values>> waitsAtEnd; // of a rank's thread blocks
};

} // namespace

void placeSignals(Program &program, const std::vector<StepRef> &order) {
  Ordering ordering(program, order);
  std::vector<Wait> waits = ordering.run();
  Insertion(program, order, ordering, waits).run();
}

uint64_t signalPlacementWords(const Program &program) {
  uint64_t steps = 0;
  for (const Rank &rank : program.ranks)
    steps += rank.steps.size();
  uint64_t blocks = Blocks(program).size();
  return (steps + blocks) * blocks;
}

} // namespace occl::passes
