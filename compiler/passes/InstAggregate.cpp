#include "compiler/analysis/Dependences.h"
#include "compiler/analysis/StepGraph.h"
#include "compiler/passes/Passes.h"
#include "compiler/passes/ProgramPass.h"

#include <map>
#include <tuple>

namespace occl::passes {
#define GEN_PASS_DEF_INSTAGGREGATE
#include "compiler/passes/Passes.h.inc"
} // namespace occl::passes

using namespace mlir;
using namespace occl;
using namespace occl::analysis;
using inst::Instruction;
using inst::Place;

namespace {

constexpr uint32_t kNone = ~0u;

/// Two steps of a rank: `second` would become part of `first`.
struct Pair {
  uint32_t rank, first, second;
};

/// Where a transfer is used: positions on ranks, the sender first.
using Ends = llvm::SmallVector<std::pair<uint32_t, uint32_t>, 2>;

class Aggregation {
public:
  explicit Aggregation(Program &program)
      : program(program), network(program), ends(program.numTransfers),
        following(program.numTransfers, kNone) {
    for (uint32_t r = 0; r < program.ranks.size(); ++r) {
      const Rank &rank = program.ranks[r];
      dependences.emplace_back(program, rank);
      erased.emplace_back(rank.steps.size());
      mergedInto.emplace_back(rank.steps.size());
      for (uint32_t i = 0; i < rank.steps.size(); ++i)
        mergedInto[r][i] = i;
    }
    linkTransfers();
  }

  void run() {
    for (uint32_t transfer : heads)
      while (transfer != kNone)
        if (following[transfer] == kNone || !tryMerge(transfer))
          transfer = following[transfer];
    for (uint32_t r = 0; r < program.ranks.size(); ++r) {
      mergeLocal(r);
      eraseSteps(program.ranks[r], erased[r]);
    }
  }

private:
  /// Finds the ends of transfers, and the order of those of each connection.
  void linkTransfers() {
    std::vector<uint32_t> last(network.connections.size(), kNone);
    for (uint32_t r = 0; r < program.ranks.size(); ++r)
      for (uint32_t i = 0; i < program.ranks[r].steps.size(); ++i)
        forEachMessage(program.ranks[r].steps[i].instruction.destinations, [&](const Place &place) {
          ends[place.index].push_back({r, i});
          uint32_t &previous = last[network.connectionOf(place)];
          if (previous == kNone)
            heads.push_back(place.index);
          else
            following[previous] = place.index;
          previous = place.index;
        });
    for (uint32_t r = 0; r < program.ranks.size(); ++r)
      for (uint32_t i = 0; i < program.ranks[r].steps.size(); ++i)
        forEachMessage(program.ranks[r].steps[i].instruction.sources, [&](const Place &place) {
          ends[place.index].push_back({r, i});
        });
  }

  Instruction &instructionAt(uint32_t rank, uint32_t step) {
    return program.ranks[rank].steps[step].instruction;
  }

  /// Whether the places of `second` continue those of `first`.
  bool continues(const inst::Places &first, const inst::Places &second, uint32_t count) const {
    return first.size() == second.size() &&
           llvm::all_of(llvm::zip(first, second), [&](const auto &places) {
             auto [a, b] = places;
             if (a.isLocal() || b.isLocal())
               return a.kind == b.kind && a.index + count == b.index;
             return following[a.index] == b.index;
           });
  }

  bool fits(const Pair &pair) {
    const Instruction &first = instructionAt(pair.rank, pair.first);
    const Instruction &second = instructionAt(pair.rank, pair.second);
    if (first.final != second.final || first.threadBlock != second.threadBlock ||
        (first.extent + first.count) % program.partChunks != second.extent ||
        !continues(first.sources, second.sources, first.count) ||
        !continues(first.destinations, second.destinations, first.count))
      return false;
    // The second moves to the place of the first, past everything between.
    return llvm::all_of(dependences[pair.rank].before(pair.second), [&](uint32_t before) {
      return mergedInto[pair.rank][before] < pair.first;
    });
  }

  /// Merges `transfer` and the one that follows it, and with them all instructions that pass both
  /// on; or nothing.
  bool tryMerge(uint32_t transfer) {
    llvm::SmallVector<Pair, 8> pairs;
    llvm::SmallDenseMap<std::pair<uint32_t, uint32_t>, uint32_t, 8> partner;
    bool possible = addEnds(transfer, pairs, partner);
    for (size_t next = 0; possible && next < pairs.size(); ++next) {
      Pair pair = pairs[next];
      possible = fits(pair);
      Instruction &first = instructionAt(pair.rank, pair.first);
      for (inst::Places *places : {&first.sources, &first.destinations})
        for (Place place : *places)
          possible = possible && (place.isLocal() || addEnds(place.index, pairs, partner));
    }
    if (possible)
      llvm::for_each(pairs, [&](const Pair &pair) { merge(pair); });
    return possible;
  }

  /// Adds the pairs that merging `transfer` with its follower takes. False if a step would be in
  /// two.
  bool addEnds(uint32_t transfer, llvm::SmallVectorImpl<Pair> &pairs,
               llvm::SmallDenseMap<std::pair<uint32_t, uint32_t>, uint32_t, 8> &partner) {
    uint32_t next = following[transfer];
    if (next == kNone || ends[transfer].size() != ends[next].size())
      return false;
    for (auto [a, b] : llvm::zip(ends[transfer], ends[next])) {
      if (a.first != b.first)
        return false;
      auto [entry, isNew] = partner.try_emplace(a, b.second);
      if (!isNew && entry->second == b.second)
        continue;
      if (!isNew || !partner.try_emplace(b, a.second).second)
        return false;
      pairs.push_back({a.first, a.second, b.second});
    }
    return true;
  }

  void merge(const Pair &pair) {
    Instruction &first = instructionAt(pair.rank, pair.first);
    Instruction &second = instructionAt(pair.rank, pair.second);
    first.count += second.count;
    erased[pair.rank][pair.second] = true;
    mergedInto[pair.rank][pair.second] = pair.first;
    for (auto [a, b] : llvm::zip(first.destinations, second.destinations))
      if (!a.isLocal())
        following[a.index] = following[b.index];
  }

  /// Merges local instructions whose places continue each other.
  void mergeLocal(uint32_t r) {
    // Of each local instruction, by its first places and what continues it: opcode, source and
    // destination.
    std::map<std::tuple<inst::PlaceKind, uint32_t, inst::PlaceKind, uint32_t>, uint32_t> expected;
    Rank &rank = program.ranks[r];
    for (uint32_t i = 0; i < rank.steps.size(); ++i) {
      Instruction &instruction = rank.steps[i].instruction;
      plan::Opcode opcode = opcodeOf(instruction);
      if (erased[r][i] || (opcode != plan::Opcode::Copy && opcode != plan::Opcode::Reduce))
        continue;
      Place source = instruction.sources.front(), destination = *instruction.localDestination();
      uint32_t target = i;
      auto found = expected.find({source.kind, source.index, destination.kind, destination.index});
      if (found != expected.end() && fits({r, found->second, i})) {
        target = found->second;
        expected.erase(found);
        merge({r, target, i});
      }
      uint32_t count = rank.steps[target].instruction.count;
      const Instruction &merged = rank.steps[target].instruction;
      source = merged.sources.front();
      destination = *merged.localDestination();
      expected[{source.kind, source.index + count, destination.kind, destination.index + count}] =
          target;
    }
  }

  Program &program;
  Network network;
  std::vector<RankDependences> dependences; // of the steps before any was merged
  std::vector<Ends> ends;                   // of each transfer
  std::vector<uint32_t> following;          // the next transfer of the connection
  std::vector<uint32_t> heads;              // the first transfer of each connection
  std::vector<std::vector<bool>> erased;
  std::vector<std::vector<uint32_t>> mergedInto; // the step that a step is part of
};

class InstAggregatePass : public passes::impl::InstAggregateBase<InstAggregatePass> {
  void runOnOperation() override {
    auto transform = [](Program &program, inst::ProgramOp op) {
      if (failed(passes::requireTransfers(op)))
        return failure();
      Aggregation(program).run();
      return success();
    };
    if (failed(passes::transformPrograms(getOperation(), transform)))
      signalPassFailure();
  }
};

} // namespace
