#include "compiler/dialect/Instruction.h"

#include "llvm/ADT/STLExtras.h"

namespace occl::inst {

plan::Opcode opcodeOf(const Instruction &instruction) {
  using plan::Opcode;
  if (instruction.isControl())
    return instruction.sources.empty() ? Opcode::Signal : Opcode::Wait;
  auto isPeer = [](Place place) { return place.isPeer(); };
  if (llvm::any_of(instruction.sources, isPeer) || llvm::any_of(instruction.destinations, isPeer))
    return Opcode::LoadReduceStore;
  bool stores = instruction.localDestination() != nullptr;
  bool sends = instruction.destinations.size() > (stores ? 1 : 0);
  bool folds = instruction.sources.size() > 1;
  bool receives = !llvm::all_of(instruction.sources, [](Place place) { return place.isLocal(); });
  if (!receives)
    return sends ? Opcode::Send : folds ? Opcode::Reduce : Opcode::Copy;
  if (!sends)
    return folds ? Opcode::RecvReduceCopy : Opcode::Recv;
  if (!folds)
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
