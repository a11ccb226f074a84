#include "compiler/dialect/inst/Instruction.h"

#include "llvm/ADT/STLExtras.h"

namespace occl::inst {

plan::Opcode opcodeOf(const Instruction &instruction) {
  // The opcode is not stored but follows from the operands: so that passes that change operands
  // cannot leave a wrong one.
  using plan::Opcode;
  if (instruction.isControl())
    return instruction.sources.empty() ? Opcode::Signal : Opcode::Wait;
  // What it does, in four questions; control instructions have no data and were told apart before.
  bool receives = false, sends = false, stores = false, accessesPeers = false;
  for (const Place &place : instruction.sources) {
    receives |= !place.isLocal();
    accessesPeers |= place.isPeer();
  }
  for (const Place &place : instruction.destinations) {
    sends |= !place.isLocal();
    stores |= place.isLocal();
    accessesPeers |= place.isPeer();
  }
  // Any access of another rank's buffer makes it a direct one, whatever else it does.
  if (accessesPeers)
    return Opcode::LoadReduceStore;
  bool reduces = instruction.sources.size() > 1;
  // Without messages in: a send, a reduction, a copy; with them, a receive in all its forms.
  if (!receives)
    return sends ? Opcode::Send : reduces ? Opcode::Reduce : Opcode::Copy;
  if (!sends)
    return reduces ? Opcode::RecvReduceCopy : Opcode::Recv;
  if (!reduces)
    return Opcode::RecvCopySend;
  return stores ? Opcode::RecvReduceCopySend : Opcode::RecvReduceSend;
}

bool hasShapeOf(plan::Opcode opcode, const Instruction &instruction) {
  // The table of shapes is the plan's own (plan/model/opcode.h): both sides agree by construction.
  plan::OpcodeShape shape = plan::shapeOf(opcode);
  size_t localSources = llvm::count_if(instruction.sources, [](Place p) { return p.isLocal(); });
  size_t localDestinations =
      llvm::count_if(instruction.destinations, [](Place p) { return p.isLocal(); });
  size_t sources = instruction.sources.size();
  return sources >= shape.minSources && (shape.maxSources == 255 || sources <= shape.maxSources) &&
         (!shape.needsLocalSource || localSources == sources) &&
         (!shape.needsConnectionSource || localSources < sources) &&
         localDestinations >= shape.minLocalDestinations &&
         (shape.maxLocalDestinations == 255 || localDestinations <= shape.maxLocalDestinations) &&
         (localDestinations < instruction.destinations.size()) == shape.sends;
}

} // namespace occl::inst
