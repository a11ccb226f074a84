#include "compiler/dialect/inst/Instruction.h"

#include "llvm/ADT/STLExtras.h"

namespace occl::inst {

plan::Opcode opcodeOf(const Instruction &instruction) {
  using plan::Opcode;
  if (instruction.isControl())
    return instruction.sources.empty() ? Opcode::Signal : Opcode::Wait;
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
  if (accessesPeers)
    return Opcode::LoadReduceStore;
  bool reduces = instruction.sources.size() > 1;
  if (!receives)
    return sends ? Opcode::Send : reduces ? Opcode::Reduce : Opcode::Copy;
  if (!sends)
    return reduces ? Opcode::RecvReduceCopy : Opcode::Recv;
  if (!reduces)
    return Opcode::RecvCopySend;
  return stores ? Opcode::RecvReduceCopySend : Opcode::RecvReduceSend;
}

bool hasShapeOf(plan::Opcode opcode, const Instruction &instruction) {
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
