#include "compiler/passes/direct/DirectSteps.h"

#include "compiler/analysis/Dependences.h"
#include "plan/model/limits.h"

#include <utility>

namespace occl::passes {

using namespace analysis;
using inst::Instruction;
using inst::Place;
using inst::PlaceKind;

namespace {

/// A step's operands after the change, by where they are.
struct Operands {
  llvm::SmallVector<inst::Places, 2> runs; // of the sources: in memory and from connections in turn
  inst::Places own, peers, connections;    // of the destinations
  bool isGone = false, isDirect = false;
};

Place peerPlace(Place place, uint32_t owner) {
  place.channel = static_cast<int16_t>(owner);
  return place;
}

Operands operandsOf(const DirectMessages &messages, StepRef ref) {
  // Sources in runs: messages and memory alternate, and an instruction of a plan reads either
  // messages or peers.
  Operands result;
  size_t next = 0;
  for (Place source : messages.at(ref).sources) {
    // A message that the sender stores needs no instruction here.
    const Message *message = source.isLocal() ? nullptr : &messages[messages.of(ref)[next++]];
    if (message && message->way == Way::Store) { // the sender does it all
      result.isGone = true;
      return result;
    }
    if (message && message->way == Way::Load)
      source = peerPlace(*valueOf(messages.at(message->sender)), message->sender.rank);
    result.isDirect |= source.isPeer();
    if (result.runs.empty() || result.runs.back().back().isLocal() != source.isLocal())
      result.runs.emplace_back();
    result.runs.back().push_back(source);
  }
  // Destinations by where they are: own memory, connections that stay, memory of peers.
  for (Place destination : messages.at(ref).destinations) {
    if (destination.isLocal()) {
      result.own.push_back(destination);
      continue;
    }
    const Message &message = messages[messages.of(ref)[next++]];
    if (message.way == Way::Connection)
      result.connections.push_back(destination);
    if (message.way != Way::Store)
      continue;
    for (StepRef receiver : message.receivers)
      result.peers.push_back(peerPlace(*messages.at(receiver).localDestination(), receiver.rank));
  }
  result.isDirect |= !result.peers.empty();
  result.isGone = result.own.empty() && result.peers.empty() && result.connections.empty();
  return result;
}

/// Reduces what is in memory and what arrives in instructions of their own, the second of them with
/// the first one's result; stores and sends, likewise.
template <typename Add>
void split(const DirectMessages &messages, StepRef ref, uint32_t freeScratch, Operands operands,
           RewrittenStep &result, Add add) {
  // At most two runs of sources can be done, by way of scratch for what comes first.
  const Place scratch = {PlaceKind::Scratch, -1, freeScratch};
  // Two reductions in place of one round 16-bit floats twice.
  bool keepsBits = operands.runs.size() == 1 || operands.runs.front().size() == 1;
  result.isLegal = operands.runs.size() <= 2 && (keepsBits || messages.options.reassociate) &&
                   freeScratch + messages.at(ref).count <= plan::limits::kMaxChunks;
  inst::Places last = operands.runs.back();
  if (operands.runs.size() == 2) {
    add(operands.runs.front(), {scratch});
    last.insert(last.begin(), scratch);
    result.usesScratch = true;
  }
  // Receiving and direct accesses cannot be in one instruction: what does not go together with the
  // last run is an instruction of its own.
  bool receives = !last.back().isLocal();
  inst::Places &apart = receives ? operands.peers : operands.connections;
  inst::Places together = operands.own;
  together.append(receives ? operands.connections : operands.peers);
  bool isCopy = last.size() == 1 && !receives && !last.front().isPeer();
  // From where it is done: a copy's source, an own destination, or scratch.
  Place value = isCopy ? last.front() : operands.own.empty() ? scratch : operands.own.front();
  if (!apart.empty() && !isCopy && operands.own.empty()) {
    together.insert(together.begin(), scratch);
    result.usesScratch = true;
  }
  add(last, together);
  // The last one completes the reduction.
  result.instructions.back().final = messages.at(ref).final;
  if (!apart.empty())
    add({value}, apart);
}

/// Destinations are disjoint from each source, unless they are the same; from each other they are
/// since accesses of one chunk keep their order.
bool isDisjoint(const Program &program, StepRef ref, const Instruction &instruction) {
  // A slice of the destination must not be read after it was written.
  auto rangeOfPlace = [&](Place place) {
    uint32_t owner = place.owner(ref.rank);
    return std::pair(owner, rangeOf(program, program.ranks[owner], place, instruction.count));
  };
  for (const Place &destination : instruction.destinations) {
    auto [owner, range] = rangeOfPlace(destination);
    for (const Place &source : instruction.sources)
      if (auto [other, read] = rangeOfPlace(source);
          other == owner && read.overlaps(range) && !(read == range))
        return false;
  }
  return true;
}

} // namespace

RewrittenStep rewriteStep(const DirectMessages &messages, StepRef ref, uint32_t freeScratch) {
  // From one step to none, one, or up to three.
  RewrittenStep result;
  Operands operands = operandsOf(messages, ref);
  if (operands.isGone)
    return result;
  auto add = [&](inst::Places sources, const inst::Places &destinations) {
    Instruction &instruction = result.instructions.emplace_back(messages.at(ref));
    instruction.sources = std::move(sources);
    instruction.destinations = destinations;
    instruction.final = false;
  };
  // Without direct accesses it stays one instruction, less what others do for it.
  if (!operands.isDirect) {
    operands.own.append(operands.connections);
    add(messages.at(ref).sources, operands.own);
    result.instructions.back().final = messages.at(ref).final;
    return result;
  }
  split(messages, ref, freeScratch, std::move(operands), result, add);
  // What cannot be said in a plan makes the ways of its messages impossible.
  for (const Instruction &instruction : result.instructions)
    result.isLegal &=
        isDisjoint(messages.program, ref, instruction) &&
        instruction.sources.size() + instruction.destinations.size() <= plan::limits::kMaxOperands;
  return result;
}

} // namespace occl::passes
