#include "compiler/passes/direct/DirectTransfers.h"

#include "compiler/passes/direct/DirectAccesses.h"
#include "compiler/passes/direct/DirectMessages.h"
#include "compiler/passes/direct/DirectSteps.h"
#include "compiler/passes/direct/GroupConnections.h"

#include "llvm/ADT/STLExtras.h"

#include <utility>

namespace occl::passes {

using namespace analysis;
using inst::Instruction;

namespace {

/// Takes back the ways of messages that cannot be.
void takeBack(DirectMessages &messages, llvm::ArrayRef<StepRef> order) {
  // Once, however many accesses say so: the next way has other accesses.
  std::vector<bool> isSpoilt = spoiltMessages(messages, order);
  for (uint32_t message = 0; message < messages.size(); ++message)
    if (isSpoilt[message])
      messages.demote(message, &KeptMessages::spoils);
  // Steps that cannot be rewritten keep their messages.
  messages.forEachStep([&](StepRef ref) {
    if (rewriteStep(messages, ref, messages.program.ranks[ref.rank].scratchChunks).isLegal)
      return;
    for (uint32_t message : messages.of(ref))
      messages.demote(message, &KeptMessages::mixes);
  });
}

/// Chooses the way of each message. False if none is direct.
bool chooseWays(DirectMessages &messages, llvm::ArrayRef<StepRef> order) {
  messages.begin();
  // Every round takes something back; a program that needs more of them is none for this pass.
  constexpr unsigned kRounds = 32;
  for (unsigned round = 0; round < kRounds && messages.hasDirect(); ++round) {
    // A round that takes nothing back is the end.
    const size_t before = messages.numDemoted();
    takeBack(messages, order);
    if (messages.numDemoted() == before)
      return messages.hasDirect();
  }
  return false;
}

/// The program's steps with its messages as they go now, by rank; replaces the order.
std::vector<Rank> rewriteSteps(const DirectMessages &messages, std::vector<StepRef> &order) {
  // Scratch may grow.
  std::vector<Rank> ranks(messages.program.ranks.size());
  for (auto [rank, old] : llvm::zip(ranks, messages.program.ranks))
    rank.scratchChunks = old.scratchChunks;
  std::vector<StepRef> newOrder;
  // In the given order, so that the new steps have an order in which they complete, too.
  for (StepRef ref : order) {
    Rank &rank = ranks[ref.rank];
    RewrittenStep result = rewriteStep(messages, ref, rank.scratchChunks);
    for (Instruction &instruction : result.instructions) {
      newOrder.push_back({ref.rank, static_cast<uint32_t>(rank.steps.size())});
      Step &step = rank.steps.emplace_back();
      step.instruction = std::move(instruction);
      // New instructions come from the same line of the source.
      step.location = messages.program.ranks[ref.rank].steps[ref.step].location;
    }
    if (result.usesScratch)
      rank.scratchChunks += messages.at(ref).count;
  }
  order = std::move(newOrder);
  return ranks;
}

} // namespace

bool useDirectTransfers(Program &program, std::vector<StepRef> &order, const DirectOptions &options,
                        KeptMessages *kept) {
  // A connection with receivers in and outside of the sender's group is split, as only those within
  // can be accessed directly.
  size_t numConnections = program.connections.size();
  std::vector<bool> staysWhole(numConnections, false);
  std::vector<Reason> reasons(numConnections, &KeptMessages::nowhere);
  // What was split for nothing is put together again: the first round finds nearly all of it.
  constexpr unsigned kRounds = 4;
  for (unsigned round = 0; round < kRounds; ++round) {
    // In the last round nothing is split any more.
    if (round + 1 == kRounds)
      staysWhole.assign(numConnections, true);
    Program candidate = program;
    std::vector<uint32_t> partOf = splitByGroups(candidate, options.groups, staysWhole);
    DirectMessages messages(candidate, options, reasons);
    bool hasDirect = chooseWays(messages, order);
    std::vector<bool> isUsed = messages.usedConnections();
    bool isSplitForNothing = false;
    // A part that still carries messages was split for nothing: the messages would be sent twice.
    for (auto [i, connection] : llvm::enumerate(partOf))
      if (isUsed[numConnections + i]) {
        isSplitForNothing = staysWhole[connection] = true;
        reasons[connection] = messages.reasonOf(numConnections + i);
      }
    if (isSplitForNothing)
      continue;
    if (kept)
      *kept = messages.kept();
    if (!hasDirect)
      return false;
    // Only now the program is changed.
    std::vector<Rank> ranks = rewriteSteps(messages, order);
    for (auto [rank, rewritten] : llvm::zip(candidate.ranks, ranks)) {
      rank.steps = std::move(rewritten.steps);
      rank.scratchChunks = rewritten.scratchChunks;
    }
    // Connections without messages go.
    dropConnections(candidate, isUsed);
    program = std::move(candidate);
    return true;
  }
  return false;
}

} // namespace occl::passes
