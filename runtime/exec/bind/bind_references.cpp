// Which slots may refer to the sender's buffers.
#include "runtime/exec/bind/binder.h"

#include <iterator>
#include <map>

namespace occl::interpreter {

bool Binder::mayHaveReferences() const {
  auto isDirect = [](const plan::Instruction &instruction) {
    return instruction.opcode == plan::Opcode::LoadReduceStore;
  };
  const Program &program = binding->bound;
  return request.referenceBytes != 0 && plan.protocol == plan::Protocol::Simple && isAtSource() &&
         plan.outOfPlace && program.depth * program.slicesPerMessage <= kMaxReferences &&
         std::ranges::none_of(plan.instructions, isDirect);
}

/// Whether each message has one receiver, which copies it.
bool Binder::isOneCopyEach() const {
  for (size_t i = 0; i < isCopied.size(); ++i)
    if (!isCounter(i) &&
        (plan.connections[i].numDestinations > 1 || std::ranges::count(isCopied[i], false) != 0))
      return false;
  return !stores.empty();
}

/// Which connections may have references: those with one receiver. With several, a slot saves less
/// than it costs to wait for them all at the end.
void Binder::findReferences() {
  for (Layout &layout : layouts)
    layout.mayRefer = false;
  for (uint32_t r = 0; r < stores.size(); ++r)
    for (const plan::ThreadBlock &block : plan.threadBlocksOf(plan.ranks[r]))
      for (const plan::Instruction &instruction : plan.instructionsOf(block))
        if (referredTo(r, instruction))
          for (const plan::Operand &operand : plan.destinationsOf(instruction))
            if (operand.kind == plan::OperandKind::Connection)
              layouts[operand.index].mayRefer = true;
}

/// Which messages their receivers only copy, and what is stored to each chunk.
void Binder::findCopies() {
  isCopied.reserve(layouts.size());
  for (const Layout &layout : layouts)
    isCopied.emplace_back(layout.messagesPerTile, true);
  stores.resize(plan.numRanks);
  for (uint32_t r = 0; r < plan.numRanks; ++r) {
    stores[r].resize(plan.ranks[r].outputChunks);
    // Messages are counted in the order in which bindBlocks() numbers them.
    std::map<uint32_t, uint32_t> received; // messages so far, by connection
    for (const plan::ThreadBlock &block : plan.threadBlocksOf(plan.ranks[r]))
      for (const plan::Instruction &instruction : plan.instructionsOf(block)) {
        for (const plan::Operand &operand : plan.sourcesOf(instruction))
          if (operand.kind == plan::OperandKind::Connection && !isCounter(operand.index)) {
            uint32_t message = received[operand.index]++;
            if (instruction.numSources > 1 || instruction.final)
              isCopied[operand.index][message] = false;
          }
        countStores(r, instruction);
      }
  }
}

/// Whether an output operand is, in place, the input that the instruction copies.
bool Binder::isSourceInPlace(uint32_t rank, const plan::Instruction &instruction,
                             const plan::Operand &operand) const {
  auto sources = plan.sourcesOf(instruction);
  return sources.size() == 1 && sources[0].kind == plan::OperandKind::Input &&
         sources[0].rank == rank && operand.rank == rank &&
         int64_t(sources[0].index) + plan.ranks[rank].inPlaceOffset == operand.index;
}

void Binder::countStores(uint32_t rank, const plan::Instruction &instruction) {
  for (const plan::Operand &operand : plan.destinationsOf(instruction)) {
    if (operand.kind != plan::OperandKind::Output)
      continue;
    bool isItself =
        instruction.opcode == plan::Opcode::Copy && isSourceInPlace(rank, instruction, operand);
    for (uint32_t i = 0; i < instruction.count; ++i) {
      ++stores[rank][operand.index + i].all;
      stores[rank][operand.index + i].others += !isItself;
    }
  }
}

/// Whether nobody stores to a local operand's chunks after the instruction, whatever the
/// instruction itself does: an input is never stored to out of place, an output chunk once.
bool Binder::staysAsItIs(uint32_t rank, const plan::Instruction &instruction,
                         const plan::Operand &operand) const {
  if (operand.kind != plan::OperandKind::Output)
    return operand.kind == plan::OperandKind::Input;
  auto chunks = std::span(stores[rank]).subspan(operand.index, instruction.count);
  return std::ranges::all_of(chunks, [](const Stores &stored) { return stored.all == 1; });
}

/// The same for chunks of this rank's input in place.
bool Binder::staysInPlace(const plan::Instruction &instruction,
                          const plan::Operand &operand) const {
  const std::vector<Stores> &output = stores[request.rank];
  for (int64_t i = 0; i < instruction.count; ++i) {
    int64_t chunk = operand.index + rankPlan.inPlaceOffset + i;
    if (chunk >= 0 && chunk < std::ssize(output) && output[chunk].others != 0)
      return false;
  }
  return true;
}

/// The operand that holds what the instruction sends, if receivers may read it there; or nullptr.
const plan::Operand *Binder::referredTo(uint32_t rank, const plan::Instruction &instruction) const {
  const Program &program = binding->bound;
  auto sources = plan.sourcesOf(instruction), destinations = plan.destinationsOf(instruction);
  auto isMessage = [this](const plan::Operand &operand) {
    return operand.kind == plan::OperandKind::Connection && !isCounter(operand.index);
  };
  auto isMulticast = [this](const plan::Operand &operand) {
    return operand.kind == plan::OperandKind::Connection &&
           plan.connections[operand.index].numDestinations > 1;
  };
  auto isScratch = [](const plan::Operand &operand) {
    return operand.kind == plan::OperandKind::Scratch;
  };
  // Data that are referred to lie in one piece in a user buffer, and have one receiver.
  if (instruction.count == 0 || !std::ranges::any_of(destinations, isMessage) ||
      std::ranges::any_of(destinations, isMulticast) ||
      (instruction.count > 1 && program.numTiles > 1) || std::ranges::any_of(sources, isScratch) ||
      std::ranges::any_of(destinations, isScratch) ||
      sliceElements(instruction.count) * program.elementBytes < request.referenceBytes)
    return nullptr;
  // A copy leaves its source behind; any other result is in a local destination.
  bool isCopy = sources.size() == 1 && !instruction.final;
  const plan::Operand *holder = isCopy && !isMessage(sources[0]) ? &sources[0] : nullptr;
  for (const plan::Operand &operand : destinations)
    if (!holder && !isMessage(operand))
      holder = &operand;
  return holder && staysAsItIs(rank, instruction, *holder) ? holder : nullptr;
}

/// After its operands.
void Binder::bindReference(const plan::Instruction &instruction, BoundInstruction &bound) const {
  const plan::Operand *holder = stores.empty() ? nullptr : referredTo(request.rank, instruction);
  if (!holder)
    return;
  bool isSource = holder < plan.destinationsOf(instruction).data();
  bound.refers = static_cast<uint16_t>(isSource ? 1 : bound.numSources + 1);
  // In place, other instructions may store over an input, but not over this output.
  bound.refersInPlace =
      holder->kind == plan::OperandKind::Output || staysInPlace(instruction, *holder);
  // Receivers that only copy may read another process; others fold from a slot.
  bound.copyReceivers = true;
  for (size_t i = bound.firstOperand + bound.numSources + bound.numLocalDestinations;
       i < binding->operands.size(); ++i) {
    const BoundOperand &operand = binding->operands[i];
    bound.copyReceivers &= isCopied[binding->ends[operand.end].connection][operand.message];
  }
}

} // namespace occl::interpreter
