#include "compiler/analysis/Dependences.h"
#include "compiler/analysis/StepGraph.h"
#include "compiler/passes/Passes.h"
#include "compiler/passes/ProgramPass.h"

#include <map>
#include <optional>
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
using inst::PlaceKind;

namespace {

constexpr uint32_t kNone = ~0u;

/// Two steps of a rank: `second` would become part of `first`.
struct Pair {
  uint32_t rank, first, second;
};

/// Where a transfer is used: positions on ranks, the sender first.
using Ends = llvm::SmallVector<std::pair<uint32_t, uint32_t>, 2>;

/// With which message one could not be merged, and how many pairs of steps had been merged by then.
struct Misfit {
  uint32_t next = kNone;
  uint32_t numMerged = 0;
};

/// What is known of a transfer; together, because it is asked for together.
struct Transfer {
  Ends ends;
  uint32_t following = kNone; // the next transfer of the connection
  uint32_t previous = kNone;  // the one before
  Misfit misfit;              // the last one
};

class Aggregation {
public:
  explicit Aggregation(Program &program)
      : program(program), network(program), dependences(dependencesOf(program)),
        transfers(program.numTransfers) {
    // Flags and places for each step; a step that was merged points to the one that it is part of.
    for (uint32_t r = 0; r < program.ranks.size(); ++r) {
      const Rank &rank = program.ranks[r];
      erased.emplace_back(rank.steps.size());
      grown.emplace_back(rank.steps.size());
      mergedInto.emplace_back(rank.steps.size());
      for (uint32_t i = 0; i < rank.steps.size(); ++i)
        mergedInto[r][i] = i;
    }
    // Steps of all ranks numbered through, for the pairs of one attempt.
    firstStep.push_back(0);
    for (const Rank &rank : program.ranks)
      firstStep.push_back(firstStep.back() + static_cast<uint32_t>(rank.steps.size()));
    partners.assign(firstStep.back(), kNone);
    linkTransfers();
  }

  void run(bool joinLocal) {
    // Along each connection: as long as a message can be joined with the next one, or with the one
    // that continues it in memory, it is.
    for (uint32_t transfer : heads)
      while (transfer != kNone)
        if (!tryMerge(transfer, transfers[transfer].following) &&
            !tryMerge(transfer, continuation(transfer)))
          transfer = transfers[transfer].following;
    // Local instructions when messages are settled: a local one may be a part of what passes
    // messages on.
    for (uint32_t r = 0; r < program.ranks.size(); ++r) {
      if (joinLocal)
        mergeLocal(r);
      eraseSteps(program.ranks[r], erased[r]);
    }
  }

private:
  /// Finds the ends of transfers, and the order of those of each connection.
  void linkTransfers() {
    // Sending ends first, in the order of each connection, which makes a list of its messages.
    std::vector<uint32_t> last(network.connections.size(), kNone);
    for (uint32_t r = 0; r < program.ranks.size(); ++r)
      for (uint32_t i = 0; i < program.ranks[r].steps.size(); ++i)
        forEachMessage(program.ranks[r].steps[i].instruction.destinations, [&](const Place &place) {
          transfers[place.index].ends.push_back({r, i});
          uint32_t &before = last[network.connectionOf(place)];
          if (before == kNone)
            heads.push_back(place.index);
          else
            transfers[before].following = place.index;
          // Forwards and backwards, as merged messages are taken out.
          transfers[place.index].previous = before;
          before = place.index;
          if (auto start = startOf(place.index))
            startingAt[*start] = place.index;
        });
    // Then the receivers, whose order among each other is that of ranks.
    for (uint32_t r = 0; r < program.ranks.size(); ++r)
      for (uint32_t i = 0; i < program.ranks[r].steps.size(); ++i)
        forEachMessage(program.ranks[r].steps[i].instruction.sources, [&](const Place &place) {
          transfers[place.index].ends.push_back({r, i});
        });
  }

  /// Of a message that its sender reads from memory: connection, buffer, first chunk, and the step.
  using Start = std::tuple<uint32_t, PlaceKind, uint32_t, uint32_t>;

  std::optional<Start> startOf(uint32_t transfer) {
    // Where a message comes from in its sender's memory: only of plain sends there is such a place.
    auto [rank, step] = transfers[transfer].ends.front();
    const Instruction &sender = instructionAt(rank, step);
    Place source = sender.sources.front();
    if (opcodeOf(sender) != plan::Opcode::Send)
      return std::nullopt;
    return Start(network.connectionOf(sender.destinations.front()), source.kind, source.index,
                 step);
  }

  /// The next message of the connection that continues `transfer` where it is sent, whatever stands
  /// between them. Only of messages that nobody passed on to their sender: each path is tried once.
  uint32_t continuation(uint32_t transfer) {
    auto start = startOf(transfer);
    if (!start)
      return kNone;
    auto [connection, kind, index, step] = *start;
    // Where the next chunk would begin.
    index += instructionAt(transfers[transfer].ends.front().first, step).count;
    auto found = startingAt.lower_bound(Start(connection, kind, index, step));
    bool continues = found != startingAt.end() && std::get<0>(found->first) == connection &&
                     std::get<1>(found->first) == kind && std::get<2>(found->first) == index;
    return continues ? found->second : kNone;
  }

  Instruction &instructionAt(uint32_t rank, uint32_t step) {
    return program.ranks[rank].steps[step].instruction;
  }

  /// Whether the places of `second` continue those of `first`.
  bool continues(const inst::Places &first, const inst::Places &second, uint32_t count) const {
    // Operand by operand: the next chunks of the same buffer, or messages of the same connection.
    return first.size() == second.size() &&
           llvm::all_of(llvm::zip(first, second), [&](const auto &places) {
             auto [a, b] = places;
             if (a.isLocal() || b.isLocal())
               return a.kind == b.kind && a.index + count == b.index;
             return network.connectionOf(a) == network.connectionOf(b);
           });
  }

  bool fits(const Pair &pair) {
    // What both have besides operands must agree; and the second must not have been joined with
    // others already, or its size would not be what was compared.
    const Instruction &first = instructionAt(pair.rank, pair.first);
    const Instruction &second = instructionAt(pair.rank, pair.second);
    if (first.final != second.final || first.threadBlock != second.threadBlock ||
        first.group != second.group || grown[pair.rank][pair.second] ||
        (first.extent + first.count) % program.partChunks != second.extent ||
        !continues(first.sources, second.sources, first.count) ||
        !continues(first.destinations, second.destinations, first.count))
      return false;
    // The second moves to the place of the first, past everything between.
    return llvm::all_of(dependences[pair.rank].before(pair.second), [&](uint32_t before) {
      return mergedInto[pair.rank][before] < pair.first;
    });
  }

  /// Merges `next` into `transfer`, and with them all instructions that pass both on; or nothing.
  bool tryMerge(uint32_t transfer, uint32_t next) {
    // Joining two messages means joining their senders and all their receivers, and with these the
    // messages that they pass on: pairs are collected until there are no more, and nothing is
    // changed before all of them fit.
    if (next == kNone || isKnownNotToFit(transfer, next))
      return false;
    tried.clear();
    llvm::SmallVector<Pair, 8> pairs;
    bool possible = addEnds(transfer, next, pairs);
    // Whatever else the two instructions send or receive has to be joined, too.
    for (size_t done = 0; possible && done < pairs.size(); ++done) {
      const Pair pair = pairs[done];
      const Instruction &first = instructionAt(pair.rank, pair.first);
      const Instruction &second = instructionAt(pair.rank, pair.second);
      auto addMessages = [&](const inst::Places &ofFirst, const inst::Places &ofSecond) {
        for (auto [a, b] : llvm::zip(ofFirst, ofSecond))
          possible = possible && (a.isLocal() || addEnds(a.index, b.index, pairs));
      };
      addMessages(first.sources, second.sources);
      addMessages(first.destinations, second.destinations);
    }
    // The partners are for this attempt only.
    for (const Pair &pair : pairs)
      partnerOf(pair.rank, pair.first) = partnerOf(pair.rank, pair.second) = kNone;
    // A pair that did not fit is remembered until something else was merged: the attempt would fail
    // in the same way again.
    if (possible)
      llvm::for_each(pairs, [&](const Pair &pair) { merge(pair); });
    else
      for (auto [first, second] : tried)
        transfers[first].misfit = {second, numMerged};
    return possible;
  }

  /// Whether it has been tried already to merge all that merging these two takes, and nothing was
  /// merged since. From each message of a reduction the same would be tried again.
  bool isKnownNotToFit(uint32_t transfer, uint32_t next) const {
    return transfers[transfer].misfit.next == next &&
           transfers[transfer].misfit.numMerged == numMerged;
  }

  /// The other step of the pair that a step is in, while a merge is tried.
  uint32_t &partnerOf(uint32_t rank, uint32_t step) { return partners[firstStep[rank] + step]; }

  /// Adds the pairs that merging two messages takes. False if one does not fit, or a step would be
  /// in two pairs: at the first, as most that are tried fail, and messages may have many receivers.
  bool addEnds(uint32_t transfer, uint32_t next, llvm::SmallVectorImpl<Pair> &pairs) {
    tried.push_back({transfer, next});
    if (transfers[transfer].ends.size() != transfers[next].ends.size())
      return false;
    // Receivers in the same order: the same ranks, different steps.
    for (auto [a, b] : llvm::zip(transfers[transfer].ends, transfers[next].ends)) {
      if (a.first != b.first || a.second == b.second || erased[b.first][b.second])
        return false;
      uint32_t &ofFirst = partnerOf(a.first, a.second), &ofSecond = partnerOf(b.first, b.second);
      // Met before in this attempt, as a pair: nothing to add.
      if (ofFirst == b.second && ofSecond == a.second)
        continue;
      const Pair pair{a.first, a.second, b.second};
      if (ofFirst != kNone || ofSecond != kNone || !fits(pair))
        return false;
      ofFirst = b.second;
      ofSecond = a.second;
      pairs.push_back(pair);
    }
    return true;
  }

  void merge(const Pair &pair) {
    ++numMerged;
    Instruction &first = instructionAt(pair.rank, pair.first);
    Instruction &second = instructionAt(pair.rank, pair.second);
    // The first grows, the second goes; its messages leave the list of their connection.
    first.count += second.count;
    erased[pair.rank][pair.second] = true;
    grown[pair.rank][pair.first] = true;
    mergedInto[pair.rank][pair.second] = pair.first;
    forEachMessage(second.destinations, [&](const Place &place) {
      uint32_t before = transfers[place.index].previous, after = transfers[place.index].following;
      transfers[before].following = after;
      if (after != kNone)
        transfers[after].previous = before;
    });
  }

  /// Merges local instructions whose places continue each other.
  void mergeLocal(uint32_t r) {
    // Of each local instruction, by its first places and what continues it: opcode, source and
    // destination.
    std::map<std::tuple<PlaceKind, uint32_t, PlaceKind, uint32_t>, uint32_t> expected;
    Rank &rank = program.ranks[r];
    // In order: a local instruction that begins where an earlier one of the same kind ends is
    // joined to that.
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
      // Where the joined one would be continued.
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
  std::vector<Transfer> transfers;
  std::map<Start, uint32_t> startingAt;             // transfers
  std::vector<std::pair<uint32_t, uint32_t>> tried; // messages that one merge takes
  uint32_t numMerged = 0;                           // pairs of steps
  std::vector<uint32_t> heads;                      // the first transfer of each connection
  std::vector<uint32_t> firstStep;                  // of each rank, in `partners`
  std::vector<uint32_t> partners;                   // of all steps, see partnerOf
  std::vector<std::vector<bool>> erased;
  std::vector<std::vector<bool>> grown; // steps that others are part of: these waited for more
  std::vector<std::vector<uint32_t>> mergedInto; // the step that a step is part of
};

class InstAggregatePass : public passes::impl::InstAggregateBase<InstAggregatePass> {
  using InstAggregateBase::InstAggregateBase;

  void runOnOperation() override {
    auto transform = [&](Program &program, inst::ProgramOp op) {
      if (failed(passes::requireTransfers(op)))
        return failure();
      Aggregation(program).run(local);
      return success();
    };
    if (failed(passes::transformPrograms(getOperation(), transform)))
      signalPassFailure();
  }
};

} // namespace
